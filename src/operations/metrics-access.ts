import { timingSafeEqual } from 'node:crypto'
import { AppError } from '#lib/errors.ts'

export const wrongToken = 'This is not the metrics token.'
export const notLocal = 'Metrics are available to clients on this machine only.'

/** Throws unless the request has the token or, without a token, comes from this machine. */
export function requireMetricsAccess(
  token: string | undefined,
  request: Request,
  address: string | undefined,
): void {
  if (token !== undefined) requireToken(request, token)
  else requireLocalClient(request, address)
}

function requireToken(request: Request, token: string): void {
  const [, sent = ''] = /^Bearer +(.+)$/i.exec(request.headers.get('authorization') ?? '') ?? []
  // `timingSafeEqual` needs equal lengths, which hashes have.
  if (!timingSafeEqual(sha256(sent), sha256(token))) throw new AppError('invalid_token', wrongToken)
}

/** Headers by which a proxy on this machine names the client that it forwards for. */
const forwardingHeaders = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

function requireLocalClient(request: Request, address = ''): void {
  const isLocal = /^(127(\.\d+){3}|::1|::ffff:127(\.\d+){3})$/.test(address)
  const isForwarded = forwardingHeaders.some((name) => request.headers.has(name))
  if (!isLocal || isForwarded) throw new AppError('permission_denied', notLocal)
}

function sha256(text: string): Uint8Array {
  return new Bun.CryptoHasher('sha256').update(text).digest()
}
