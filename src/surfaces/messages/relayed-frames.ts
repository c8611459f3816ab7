import { toLine, withoutLineSeparators } from '#http/frame-text.ts'
import type { Relay, RelayFrame } from '#inference/events.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'

/** One frame of an upstream of the same protocol, as its caller gets it; `data` is its JSON. */
export type OwnFrame = { readonly payload: JsonObject; readonly data: string }

type Ours = { readonly id: string; readonly model: string; readonly reasoningSeal: ReasoningSeal }

/**
 * Frames of an upstream as they came, but for what must be ours: the id of the message, the name of
 * its model, and what seals reasoning, which has to come back to this very upstream.
 */
export class RelayReader {
  readonly #ours: Ours
  #thoughts = ''

  constructor(ours: Ours) {
    this.#ours = ours
  }

  read({ frames, maker }: Relay): OwnFrame[] {
    const own: OwnFrame[] = []
    for (const frame of frames) own.push(this.#own(frame, maker))
    return own
  }

  #own(frame: RelayFrame, maker: string): OwnFrame {
    const { payload, sealed } = frame
    const { type } = payload
    if (type === 'content_block_delta') this.#readThoughts(payload['delta'])
    else if (type === 'content_block_start') this.#thoughts = ''
    else if (type === 'message_start') return this.#named(payload)
    if (sealed !== undefined) return rewritten(withSeal(payload, this.#seal(sealed, maker)))
    return inOneLine(frame)
  }

  #readThoughts(delta: unknown) {
    const { type, thinking } = asRecord(delta)
    if (type === 'thinking_delta' && typeof thinking === 'string') this.#thoughts += thinking
  }

  #named(payload: JsonObject): OwnFrame {
    const { id, model } = this.#ours
    return rewritten({ ...payload, message: { ...asRecord(payload['message']), id, model } })
  }

  #seal(payload: string, maker: string): string {
    return this.#ours.reasoningSeal.seal({ text: this.#thoughts, payload, maker })
  }
}

/** Nearly every frame goes on as it came, so nothing is made for it. */
function inOneLine(frame: RelayFrame): OwnFrame {
  const data = withoutLineSeparators(frame.data)
  return data === frame.data ? frame : { payload: frame.payload, data }
}

function rewritten(payload: JsonObject): OwnFrame {
  return { payload, data: toLine(payload) }
}

function withSeal(payload: JsonObject, seal: string): JsonObject {
  const { content_block: block, delta } = payload
  if (delta !== undefined) return { ...payload, delta: { ...asRecord(delta), signature: seal } }
  const field = asRecord(block)['type'] === 'redacted_thinking' ? 'data' : 'signature'
  return { ...payload, content_block: { ...asRecord(block), [field]: seal } }
}
