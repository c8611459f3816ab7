import { decodePlainId, encodePlainId } from '#lib/plain-id.ts'

const escapePrefix = 'toolu_b64_'

/** The id of a call in a form that the protocol allows in `tool_use`. */
export function toToolUseId(callId: string): string {
  return encodePlainId(callId, escapePrefix)
}

/** The inverse of `toToolUseId`. */
export function fromToolUseId(toolUseId: string): string {
  return decodePlainId(toolUseId, escapePrefix)
}
