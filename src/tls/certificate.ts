import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { StartError } from '#start-error.ts'
import type { TlsSettings } from './config.ts'

/** The text of the files of a certificate. */
export type CertificateFiles = {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | null
}

/** A certificate that was found to be complete, with the key that belongs to it. */
export type ServerCertificate = CertificateFiles & {
  readonly expiresAt: Date
  /** For log lines and findings. */
  readonly subject: string
}

/** Paths of the files of a certificate. */
export type CertificatePaths = {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | undefined
}

function certificatePaths({ cert, key, clientCa }: TlsSettings): CertificatePaths | null {
  return cert === undefined || key === undefined ? null : { cert, key, clientCa }
}

/** Throws a `StartError` that names the file. */
export async function readCertificateFiles(paths: CertificatePaths): Promise<CertificateFiles> {
  const [cert, key, clientCa] = await Promise.all([
    readText('certificate', paths.cert),
    readText('key', paths.key),
    paths.clientCa === undefined ? null : readText('client CA', paths.clientCa),
  ])
  return { cert, key, clientCa }
}

/** Throws a `StartError` if the files do not make a usable certificate. */
export function checkCertificate(
  files: CertificateFiles,
  paths: CertificatePaths,
): ServerCertificate {
  const [own] = parseCertificates(files.cert, 'certificate', paths.cert)
  const key = parseKey(files.key, paths.key)
  if (own === undefined || !own.checkPrivateKey(key)) {
    throw new StartError(
      `The TLS key ${paths.key} does not belong to the certificate ${paths.cert}.`,
    )
  }
  if (files.clientCa !== null) parseCertificates(files.clientCa, 'client CA', paths.clientCa ?? '')
  return { ...files, expiresAt: own.validToDate, subject: nameOf(own) }
}

/** The certificate of the configuration; null without TLS. Throws a `StartError`. */
export async function readServedCertificate(
  settings: TlsSettings,
): Promise<{ paths: CertificatePaths; certificate: ServerCertificate } | null> {
  const paths = certificatePaths(settings)
  if (paths === null) return null
  return { paths, certificate: checkCertificate(await readCertificateFiles(paths), paths) }
}

export function isSame(a: CertificateFiles, b: CertificateFiles): boolean {
  return a.cert === b.cert && a.key === b.key && a.clientCa === b.clientCa
}

async function readText(what: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    const reasons: Record<string, string> = {
      ENOENT: 'no such file.',
      EACCES: 'permission denied.',
      EISDIR: 'it is a folder.',
    }
    const reason = reasons[code] ?? `${error instanceof Error ? error.message : error}.`
    throw new StartError(`The TLS ${what} ${path} cannot be read: ${reason}`, { cause: error })
  }
}

const certificateBlock = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/** All certificates of a PEM file; at least one. */
function parseCertificates(text: string, what: string, path: string): X509Certificate[] {
  const blocks = text.match(certificateBlock) ?? []
  try {
    if (blocks.length > 0) return blocks.map((block) => new X509Certificate(block))
  } catch {
    // Reported below.
  }
  throw new StartError(`The TLS ${what} ${path} is not a certificate in PEM format.`)
}

function parseKey(text: string, path: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch {
    throw new StartError(`The TLS key ${path} is not an unencrypted private key in PEM format.`)
  }
}

/** The first DNS name or address that it is for. */
function nameOf({ subjectAltName, subject }: X509Certificate): string {
  const [first] = (subjectAltName ?? '').split(', ')
  return first?.replace(/^(DNS|IP Address):/, '') || subject.replaceAll('\n', ', ')
}
