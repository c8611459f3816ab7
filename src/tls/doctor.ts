import type { CheckGroup } from '#doctor/check.ts'
import { fail, ok, warn } from '#doctor/finding.ts'
import { StartError } from '#start-error.ts'
import { readServedCertificate } from './certificate.ts'

const check = 'certificate'
const dayMs = 86_400_000

/** Whether the TLS certificate is usable, and for how long. */
export const certificateCheck: CheckGroup = {
  name: check,
  limitMs: () => 5_000,
  async check({ config: { tls }, now }) {
    try {
      const read = await readServedCertificate(tls)
      if (read === null) return []
      const { paths, certificate } = read
      const { subject, expiresAt } = certificate
      const leftDays = Math.floor((expiresAt.getTime() - now().getTime()) / dayMs)
      const fact = `${paths.cert} for ${subject} is valid until ${expiresAt.toISOString()}`
      const advice = 'Replace the files; a running server notices it by itself.'
      if (expiresAt <= now()) return [fail(check, `${paths.cert} has expired`, advice)]
      return [leftDays <= tls.expiryWarningDays ? warn(check, fact, advice) : ok(check, fact)]
    } catch (error) {
      if (!(error instanceof StartError)) throw error
      return [fail(check, error.message, 'Correct tls.cert, tls.key or tls.client_ca.')]
    }
  },
}
