import { type Finding, ok, warn } from '#doctor/finding.ts'
import { secondsOf } from '#doctor/format.ts'

/** Tokens, leases and signatures need synchronised clocks; a `Date` header has whole seconds. */
const differenceMsMax = 5_000

export function clockFinding(of: string, aheadMs: number): Finding {
  const check = `clock of ${of}`
  if (Math.abs(aheadMs) <= differenceMsMax)
    return ok(check, `within ${secondsOf(differenceMsMax)} of ours`)
  const side = aheadMs > 0 ? 'ahead of' : 'behind'
  return warn(
    check,
    `${secondsOf(aheadMs)} ${side} ours`,
    'Synchronise both machines with an NTP server.',
  )
}
