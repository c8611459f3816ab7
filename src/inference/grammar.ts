import { assert } from '#lib/assert.ts'
import type { BlockEvent, EventBatch, GenerationEvent } from './events.ts'

/**
 * The legal order of events:
 *
 *     generation  = generation-start block* ( finish | error )
 *     block       = text | reasoning | tool-call | hosted-tool
 *     text        = text-start ( text-delta | citation )* text-end
 *     reasoning   = reasoning-start reasoning-delta* reasoning-end
 *     tool-call   = tool-call-start tool-call-delta* tool-call-end
 *     hosted-tool = hosted-tool-start ( hosted-tool-progress | hosted-tool-delta )* hosted-tool-end
 *
 * Blocks never overlap and are numbered 0, 1, 2 …. An incomplete block is the last one.
 */
export function createGrammar(): { check(event: GenerationEvent): void; end(): void } {
  let phase: 'before' | 'running' | 'over' = 'before'
  let open: { noun: string; block: number } | null = null
  let nextBlock = 0
  let sawIncomplete = false
  const callIds = new Set<string>()

  const checkBlock = (event: BlockEvent) => {
    const { noun, action } = parseType(event.type)
    if (action === 'start') {
      assert(open === null, `${event.type} while block ${open?.block} is open`)
      assert(event.block === nextBlock, `block ${event.block} is not number ${nextBlock}`)
      assert(!sawIncomplete, `${event.type} after an incomplete block`)
      open = { noun, block: event.block }
      nextBlock++
    } else {
      const inside = open?.noun === noun && open.block === event.block
      assert(inside, `${event.type} outside its block ${event.block}`)
      if (action === 'end') open = null
    }
    if ('complete' in event && !event.complete) sawIncomplete = true
    if (event.type !== 'tool-call-start') return
    assert(!callIds.has(event.call.callId), `call id ${event.call.callId} twice`)
    callIds.add(event.call.callId)
  }

  return {
    check(event) {
      assert(phase !== 'over', `${event.type} after the terminal event`)
      if (event.type === 'generation-start') {
        assert(phase === 'before', 'a second generation-start')
        phase = 'running'
        return
      }
      assert(phase === 'running', `${event.type} before generation-start`)
      if (event.type === 'finish' || event.type === 'error') {
        assert(open === null, `${event.type} while block ${open?.block} is open`)
        phase = 'over'
      } else {
        checkBlock(event)
      }
    },
    end: () => assert(phase === 'over', 'the stream ended without a terminal event'),
  }
}

function parseType(type: BlockEvent['type']): { noun: string; action: string } {
  if (type === 'citation') return { noun: 'text', action: 'delta' }
  const cut = type.lastIndexOf('-')
  return { noun: type.slice(0, cut), action: type.slice(cut + 1) }
}

/** Checks the order of events while forwarding batches; for tests and development. */
export async function* checkEvents(
  batches: AsyncIterable<EventBatch>,
): AsyncGenerator<EventBatch, void, void> {
  const grammar = createGrammar()
  for await (const batch of batches) {
    for (const event of batch) grammar.check(event)
    yield batch
  }
  grammar.end()
}

/** The incomplete end of the block that `last` leaves open, if any. */
export function endOfBlock(last: GenerationEvent): BlockEvent[] {
  switch (last.type) {
    case 'text-start':
    case 'text-delta':
    case 'citation':
      return [{ type: 'text-end', block: last.block, complete: false }]
    case 'reasoning-start':
    case 'reasoning-delta':
      return [{ type: 'reasoning-end', block: last.block, complete: false }]
    case 'tool-call-start':
    case 'tool-call-delta':
      return [{ type: 'tool-call-end', block: last.block, complete: false }]
    case 'hosted-tool-start':
    case 'hosted-tool-progress':
    case 'hosted-tool-delta':
      return [{ type: 'hosted-tool-end', block: last.block, item: null }]
    default:
      return []
  }
}
