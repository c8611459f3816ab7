import type { BlockEvent } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import type { BlockContext, BlockSink, EventOf, OpenBlock } from './block.ts'

const betweenParts = '\n\n'

/**
 * Reasoning as a thinking block. Clients keep its text and its signature alone, so the signature is
 * our seal of the thoughts and of what their maker sealed. Where there is only the latter, the
 * block has no text, as where the caller wants none.
 */
export class ThinkingBlock implements OpenBlock {
  readonly #isShown: boolean
  #text = ''
  #part: number | null = null
  readonly #isSummary: boolean
  readonly #seal: ReasoningSeal

  constructor(start: EventOf<'reasoning-start'>, context: BlockContext) {
    this.#isShown = context.thinkingDisplay === 'summarized'
    this.#isSummary = start.form === 'summary'
    this.#seal = context.reasoningSeal
  }

  start(): string {
    return ''
  }

  push(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'reasoning-delta', `${event.type} in reasoning`)
    if (event.text === '') return ''
    const isNewPart = this.#text !== '' && event.part !== this.#part
    const added = isNewPart ? betweenParts + event.text : event.text
    this.#part = event.part
    this.#text += added
    return this.#isShown ? opened(sink) + sink.delta('thinking_delta', added) : opened(sink)
  }

  end(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'reasoning-end', `${event.type} ends reasoning`)
    const { sealed: payload = null, sealedBy: maker = null } = event
    if (this.#text === '' && payload === null) return sink.stop()
    // A summary is not what the model thought, so it is nothing to give back to it.
    const thoughts = this.#isSummary ? '' : this.#text
    const signature = this.#seal.seal({ text: thoughts, payload, maker })
    return opened(sink) + sink.delta('signature_delta', signature) + sink.stop()
  }
}

function opened(sink: BlockSink): string {
  return sink.isOpen() ? '' : sink.start({ type: 'thinking', thinking: '', signature: '' })
}
