import { changedFrame, type Relay, type RelayFrame } from '#inference/events.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'

type Identity = {
  readonly id: string
  readonly model: string
  readonly reasoningSeal: ReasoningSeal
}

/**
 * Relays the frames of an upstream unchanged, except for the id of the message, the name of the
 * model, and signatures of thinking, which are sealed so that they return to the same upstream.
 */
export class RelayRewriter {
  readonly #identity: Identity
  #thinking = ''

  constructor(identity: Identity) {
    this.#identity = identity
  }

  rewrite({ frames, maker }: Relay): RelayFrame[] {
    const relayed: RelayFrame[] = []
    for (const frame of frames) relayed.push(this.#rewriteFrame(frame, maker))
    return relayed
  }

  #rewriteFrame(frame: RelayFrame, maker: string): RelayFrame {
    const { payload, sealed } = frame
    const { type } = payload
    if (type === 'content_block_delta') this.#collectThinking(payload['delta'])
    else if (type === 'content_block_start') this.#thinking = ''
    else if (type === 'message_start') return this.#identify(payload)
    if (sealed !== undefined) return changedFrame(withSeal(payload, this.#seal(sealed, maker)))
    return frame
  }

  #collectThinking(delta: unknown) {
    const { type, thinking } = asRecord(delta)
    if (type === 'thinking_delta' && typeof thinking === 'string') this.#thinking += thinking
  }

  #identify(payload: JsonObject): RelayFrame {
    const { id, model } = this.#identity
    return changedFrame({ ...payload, message: { ...asRecord(payload['message']), id, model } })
  }

  #seal(payload: string, maker: string): string {
    return this.#identity.reasoningSeal.seal({ text: this.#thinking, payload, maker })
  }
}

function withSeal(payload: JsonObject, seal: string): JsonObject {
  const { content_block: block, delta } = payload
  if (delta !== undefined) return { ...payload, delta: { ...asRecord(delta), signature: seal } }
  const field = asRecord(block)['type'] === 'redacted_thinking' ? 'data' : 'signature'
  return { ...payload, content_block: { ...asRecord(block), [field]: seal } }
}
