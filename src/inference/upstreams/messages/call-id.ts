/** What stands before an id that had to be spelled otherwise. */
const escaped = 'call64_'

/**
 * A call id in the signs that the protocol allows. Other protocols have ids such as
 * `functions.Read:0`; two different ids never become the same one.
 */
export function legalCallId(callId: string): string {
  if (/^[a-zA-Z0-9_-]+$/.test(callId) && !callId.startsWith(escaped)) return callId
  return escaped + Buffer.from(callId).toString('base64url')
}
