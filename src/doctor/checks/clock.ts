import { type Finding, ok, warn } from '#doctor/finding.ts'
import { secondsOf } from '#doctor/words.ts'

/** Tokens, leases and signatures live by clocks that agree; a `Date` header tells whole seconds. */
const apartMsMax = 5_000

export function clockFinding(of: string, aheadMs: number): Finding {
  const check = `clock of ${of}`
  if (Math.abs(aheadMs) <= apartMsMax) return ok(check, `within ${secondsOf(apartMsMax)} of ours`)
  const side = aheadMs > 0 ? 'ahead of' : 'behind'
  return warn(
    check,
    `${secondsOf(aheadMs)} ${side} ours`,
    'Let both machines take their time from an NTP server.',
  )
}
