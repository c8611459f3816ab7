import { readPlainly, spellPlainly } from '#lib/plain-id.ts'

const escapeMark = 'toolu_b64_'

/** The id of a call as `tool_use` bears it: the call's own one, or that in a form that may be sent. */
export function toToolUseId(callId: string): string {
  return spellPlainly(callId, escapeMark)
}

/** The id of the call that a `tool_use_id` means. */
export function fromToolUseId(toolUseId: string): string {
  return readPlainly(toolUseId, escapeMark)
}
