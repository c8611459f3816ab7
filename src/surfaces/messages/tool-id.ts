/** Ids that every client and upstream of the format takes as they are. */
const plainId = /^[A-Za-z0-9_-]+$/
const escapeMark = 'toolu_b64_'

/** The id of a call as `tool_use` bears it: the call's own one, or that in a form that may be sent. */
export function toToolUseId(callId: string): string {
  if (plainId.test(callId) && !callId.startsWith(escapeMark)) return callId
  return escapeMark + Buffer.from(callId).toString('base64url')
}

/** The id of the call that a `tool_use_id` means. */
export function fromToolUseId(toolUseId: string): string {
  if (!toolUseId.startsWith(escapeMark)) return toolUseId
  const callId = Buffer.from(toolUseId.slice(escapeMark.length), 'base64url').toString()
  // What we did not write is somebody else's id, which happens to begin alike.
  return toToolUseId(callId) === toolUseId ? callId : toolUseId
}
