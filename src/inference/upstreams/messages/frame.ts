import type { RelayFrame } from '#inference/events.ts'
import type { JsonObject } from '#lib/json.ts'
import { readSealed } from './thinking.ts'

/** A message of the stream; `data` is its JSON text where that came so, and otherwise empty. */
export function frameOf(payload: JsonObject, data = ''): RelayFrame {
  const text = data === '' || data.includes('\n') ? JSON.stringify(payload) : data
  const sealed = readSealed(payload)
  return sealed === '' ? { payload, data: text } : { payload, data: text, sealed }
}
