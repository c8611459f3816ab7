import type { BlockEvent } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'
import type { BlockContext, BlockSink, EventOf, OpenBlock } from './block.ts'

const betweenParts = '\n\n'

/**
 * Reasoning as a thinking block. Clients only keep its text and signature, so the signature seals the
 * reasoning together with the encrypted payload of the upstream. The block has no text if the upstream
 * sends only the payload, or the client omits it.
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
    return this.#isShown ? openOnce(sink) + sink.delta('thinking_delta', added) : openOnce(sink)
  }

  end(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'reasoning-end', `${event.type} ends reasoning`)
    const { sealed: payload = null, sealedBy: maker = null } = event
    if (this.#text === '' && payload === null) return sink.stop()
    // A summary is not the reasoning itself, so it is not returned to the model.
    const reasoning = this.#isSummary ? '' : this.#text
    const signature = this.#seal.seal({ text: reasoning, payload, maker })
    return openOnce(sink) + sink.delta('signature_delta', signature) + sink.stop()
  }
}

function openOnce(sink: BlockSink): string {
  return sink.isOpen() ? '' : sink.start({ type: 'thinking', thinking: '', signature: '' })
}
