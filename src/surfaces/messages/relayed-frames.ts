import { toLine, withoutLineSeparators } from '#http/frame-text.ts'
import type { Relay, RelayFrame } from '#inference/events.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'

/** One frame of an upstream of the same protocol, as its caller gets it; `data` is its JSON. */
export type OwnFrame = { readonly payload: JsonObject; readonly data: string }

/**
 * Frames of an upstream as they came, but for what must be ours: the id of the message, the name of
 * its model, and what seals reasoning, which has to come back to this very upstream.
 */
export function createRelayReader(ours: {
  id: string
  model: string
  reasoningSeal: ReasoningSeal
}): (relay: Relay) => OwnFrame[] {
  const { id, model, reasoningSeal } = ours
  let thoughts = ''

  const seal = (payload: string, maker: string) =>
    reasoningSeal.seal({ text: thoughts, payload, maker })
  const own = (frame: RelayFrame, maker: string): OwnFrame => {
    const { payload, data, sealed } = frame
    const { type } = payload
    if (type === 'content_block_start') thoughts = ''
    if (type === 'content_block_delta') thoughts += readThoughts(payload)
    if (type === 'message_start') {
      return rewritten({ ...payload, message: { ...asRecord(payload['message']), id, model } })
    }
    if (sealed !== undefined) return rewritten(withSeal(payload, seal(sealed, maker)))
    return { payload, data: withoutLineSeparators(data) }
  }
  return ({ frames, maker }) => frames.map((frame) => own(frame, maker))
}

function rewritten(payload: JsonObject): OwnFrame {
  return { payload, data: toLine(payload) }
}

function readThoughts(payload: JsonObject): string {
  const { type, thinking } = asRecord(payload['delta'])
  return type === 'thinking_delta' && typeof thinking === 'string' ? thinking : ''
}

function withSeal(payload: JsonObject, seal: string): JsonObject {
  const { content_block: block, delta } = payload
  if (delta !== undefined) return { ...payload, delta: { ...asRecord(delta), signature: seal } }
  const field = asRecord(block)['type'] === 'redacted_thinking' ? 'data' : 'signature'
  return { ...payload, content_block: { ...asRecord(block), [field]: seal } }
}
