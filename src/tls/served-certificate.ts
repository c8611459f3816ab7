import { messageOf } from '#lib/error-message.ts'
import type { Log } from '#telemetry/log.ts'
import {
  type CertificateFiles,
  type CertificatePaths,
  checkCertificate,
  isSame,
  readCertificateFiles,
  readServedCertificate,
  type ServerCertificate,
} from './certificate.ts'
import type { TlsSettings } from './config.ts'

/** The certificate that new connections get. */
export type ServedCertificate = {
  readonly current: () => ServerCertificate
  /** Reads the files again, now. The reason why the present certificate stays is logged and returned. */
  readonly reload: () => Promise<string | null>
  /** Checks the files for changes until `close`; `listenAgain` makes the listener use `current`. */
  readonly watch: (listenAgain: () => void) => void
  readonly close: () => void
}

type ServedCertificateDeps = {
  readonly settings: TlsSettings
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly now: () => Date
}

const dayMs = 86_400_000

/**
 * Reads the certificate, and replaces it when its files change. Their content is compared, not their
 * times, because a renamed file or link keeps those of its own. Null without TLS; throws a
 * `StartError` if the files are not usable.
 */
export async function openServedCertificate(
  deps: ServedCertificateDeps,
): Promise<ServedCertificate | null> {
  const read = await readServedCertificate(deps.settings)
  return read === null ? null : serveCertificate(deps, read.paths, read.certificate)
}

function serveCertificate(
  { settings, log, now }: ServedCertificateDeps,
  paths: CertificatePaths,
  first: ServerCertificate,
): ServedCertificate {
  let current = first
  let listenAgain = () => {}
  let timer: Timer | undefined
  /** What the last failed check found: the same failure is logged once. */
  let refused: { reason: string; files: CertificateFiles | null } | null = null
  let warnedAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<string | null> = Promise.resolve(null)

  function adopt(files: CertificateFiles): void {
    const next = checkCertificate(files, paths)
    if (next.expiresAt <= now() && current.expiresAt > now()) {
      throw new Error(`The TLS certificate ${paths.cert} has expired.`)
    }
    const before = current
    current = next
    try {
      listenAgain()
    } catch (error) {
      current = before
      throw error
    }
    const { subject, expiresAt } = next
    log.info('TLS certificate reloaded', { subject, expires_at: expiresAt.toISOString() })
  }

  async function check(isAsked: boolean): Promise<string | null> {
    let files: CertificateFiles | null = null
    try {
      files = await readCertificateFiles(paths)
      if (isSame(files, current)) refused = null
      else if (!isAsked && refused?.files != null && isSame(files, refused.files)) {
        return refused.reason
      } else {
        adopt(files)
        refused = null
      }
    } catch (error) {
      const reason = messageOf(error)
      if (isAsked || refused?.reason !== reason) {
        log.warn('TLS certificate not reloaded, the present one stays', { reason })
      }
      refused = { reason, files }
    }
    warnOfExpiry()
    return refused?.reason ?? null
  }

  function warnOfExpiry(): void {
    const at = now().getTime()
    const leftDays = (current.expiresAt.getTime() - at) / dayMs
    if (leftDays > settings.expiryWarningDays || at - warnedAtMs < dayMs) return
    warnedAtMs = at
    const { subject, expiresAt } = current
    const message = leftDays > 0 ? 'TLS certificate expires soon' : 'TLS certificate has expired'
    log.warn(message, { subject, expires_at: expiresAt.toISOString() })
  }

  /** One check at a time. */
  function checkNext(isAsked: boolean): Promise<string | null> {
    running = running.then(() => check(isAsked))
    return running
  }

  return {
    current: () => current,
    reload: () => checkNext(true),
    watch(listen) {
      listenAgain = listen
      warnOfExpiry()
      timer = setInterval(() => void checkNext(false), settings.checkMs)
    },
    close: () => clearInterval(timer),
  }
}
