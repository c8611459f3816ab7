import type { ServerCertificate } from './certificate.ts'
import type { TlsSettings } from './config.ts'

/** As the protocol numbers them. */
const versionNumbers = { '1.2': 0x0303, '1.3': 0x0304 } as const

/** The TLS options of the server. */
export function serverTls(
  { cert, key, clientCa }: ServerCertificate,
  { minVersion }: Pick<TlsSettings, 'minVersion'>,
) {
  return {
    cert,
    key,
    minVersion: versionNumbers[minVersion],
    ...(clientCa === null ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
  }
}
