import { spellPlainly } from '#lib/plain-id.ts'

/** What stands before an id that had to be spelled otherwise. */
const escaped = 'call64_'

/** A call id in the signs that the protocol allows; other protocols have `functions.Read:0`. */
export function legalCallId(callId: string): string {
  return spellPlainly(callId, escaped)
}
