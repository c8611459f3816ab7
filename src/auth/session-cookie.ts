import { randomBytes } from 'node:crypto'
import { AppError } from '#lib/errors.ts'

/** Random, so a fast hash is enough to store it. */
const secretBytes = 32
const secretShape = /^[\w-]{43}$/

export function createSessionSecret(): string {
  return randomBytes(secretBytes).toString('base64url')
}

export function isSessionSecret(text: string): boolean {
  return secretShape.test(text)
}

/** The stored form of a secret. */
export function hashSecret(secret: string): Buffer {
  return new Bun.CryptoHasher('sha256').update(secret).digest()
}

/**
 * The name of a cookie of an origin. Over https its prefix makes browsers refuse one that another host
 * of the domain sets. Cookies do not know ports, so the name has that of a plain origin: otherwise two
 * gateways on one machine would end each other's sessions.
 */
export function cookieName(name: 'session' | 'login', origin: string): string {
  const { protocol, port } = new URL(origin)
  return protocol === 'https:'
    ? `__Host-sluice_${name}`
    : `sluice_${name}${port === '' ? '' : `_${port}`}`
}

/** The value of a cookie; null without it. */
export function readCookie({ headers }: Request, name: string): string | null {
  for (const pair of headers.get('cookie')?.split(';') ?? []) {
    const start = pair.indexOf('=')
    if (start !== -1 && pair.slice(0, start).trim() === name) return pair.slice(start + 1).trim()
  }
  return null
}

type CookieOptions = {
  readonly origin: string
  /** 0 deletes the cookie. */
  readonly maxAgeS: number
  /** `Lax` is also sent when another site leads to us, as an identity provider does. */
  readonly sameSite: 'Strict' | 'Lax'
}

/** A `set-cookie` header. */
export function renderCookie(
  name: 'session' | 'login',
  value: string,
  { origin, maxAgeS, sameSite }: CookieOptions,
): string {
  const secure = origin.startsWith('https:') ? '; Secure' : ''
  return `${cookieName(name, origin)}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=${sameSite}${secure}`
}

/** The header of requests that change something with a cookie: no form and no link can send it. */
const csrfHeader = 'x-sluice-csrf'
const safeMethods = ['GET', 'HEAD', 'OPTIONS']

/**
 * Throws if another site may have caused a request with a cookie (cross-site request forgery). An
 * upgrade needs an `Origin`, because a WebSocket of a browser has no header of its own.
 */
export function requireSameOrigin(
  request: Request,
  { origin, isUpgrade }: { origin: string; isUpgrade: boolean },
): void {
  const { headers, method } = request
  const sentOrigin = headers.get('origin')
  if (sentOrigin !== null && sentOrigin !== origin) {
    throw refusal('A session cookie is accepted from the pages of this gateway only.')
  }
  if (isUpgrade) {
    if (sentOrigin !== null) return
    throw refusal('A WebSocket with a session cookie needs the header Origin.')
  }
  if (safeMethods.includes(method)) return
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin') {
    throw refusal('A session cookie is accepted from the pages of this gateway only.')
  }
  if (!headers.get(csrfHeader)) {
    throw refusal(`A change with a session cookie needs the header ${csrfHeader}: 1.`)
  }
}

function refusal(sentence: string): AppError {
  return new AppError('permission_denied', sentence, { code: 'csrf_refused' })
}
