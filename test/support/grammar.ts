import type { BlockEvent, EventBatch, GenerationEvent } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'

/** Checks that events have the order that `GenerationEvent` documents. */
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

/** Checks the order of events while forwarding batches. */
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
