import { toLine, withoutLineSeparators } from '#http/frame-text.ts'
import type { Relay, RelayFrame } from '#inference/events.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'

/** A frame of an upstream of the same protocol, as sent to the client; `data` is its JSON. */
export type RelayedFrame = { readonly payload: JsonObject; readonly data: string }

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

  rewrite({ frames, maker }: Relay): RelayedFrame[] {
    const relayed: RelayedFrame[] = []
    for (const frame of frames) relayed.push(this.#rewriteFrame(frame, maker))
    return relayed
  }

  #rewriteFrame(frame: RelayFrame, maker: string): RelayedFrame {
    const { payload, sealed } = frame
    const { type } = payload
    if (type === 'content_block_delta') this.#collectThinking(payload['delta'])
    else if (type === 'content_block_start') this.#thinking = ''
    else if (type === 'message_start') return this.#identify(payload)
    if (sealed !== undefined) return rewritten(withSeal(payload, this.#seal(sealed, maker)))
    return inOneLine(frame)
  }

  #collectThinking(delta: unknown) {
    const { type, thinking } = asRecord(delta)
    if (type === 'thinking_delta' && typeof thinking === 'string') this.#thinking += thinking
  }

  #identify(payload: JsonObject): RelayedFrame {
    const { id, model } = this.#identity
    return rewritten({ ...payload, message: { ...asRecord(payload['message']), id, model } })
  }

  #seal(payload: string, maker: string): string {
    return this.#identity.reasoningSeal.seal({ text: this.#thinking, payload, maker })
  }
}

/** Nearly every frame is relayed unchanged, without an allocation. */
function inOneLine(frame: RelayFrame): RelayedFrame {
  const data = withoutLineSeparators(frame.data)
  return data === frame.data ? frame : { payload: frame.payload, data }
}

function rewritten(payload: JsonObject): RelayedFrame {
  return { payload, data: toLine(payload) }
}

function withSeal(payload: JsonObject, seal: string): JsonObject {
  const { content_block: block, delta } = payload
  if (delta !== undefined) return { ...payload, delta: { ...asRecord(delta), signature: seal } }
  const field = asRecord(block)['type'] === 'redacted_thinking' ? 'data' : 'signature'
  return { ...payload, content_block: { ...asRecord(block), [field]: seal } }
}
