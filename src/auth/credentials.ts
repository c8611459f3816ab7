import type { Peers } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import { apiKeyPrefix } from './key-format.ts'
import { cookieName, readCookie, requireSameOrigin } from './session-cookie.ts'

/** Verified credentials that are cached, about 1 KB each, by the hash of the whole credential. */
export const credentialsCachedMax = 10_000

export type Credential =
  | { readonly kind: 'api-key'; readonly key: string }
  | { readonly kind: 'jwt'; readonly token: string }
  /** The cookie of a browser. */
  | { readonly kind: 'session'; readonly secret: string }

/** The message of the gateway in front of platforms before 1.2.1; clients match it. */
export const notThreeParts = 'Jwt is not in the form of Header.Payload.Signature'

const howToSend =
  'Send a credential: "Authorization: Bearer <token or API key>" or "X-Api-Key: <API key>".'

/**
 * The credential of a request. `X-Api-Key` takes precedence without fallback: an invalid key beside
 * a valid token is refused, while an empty value counts as absent. A WebSocket client, which often cannot
 * set headers, may send it in the query parameter `token` or, like browser SDKs, in the name of a
 * subprotocol. A cookie counts only without any of them.
 */
export function readCredential(
  request: Request,
  rules: CredentialRules,
  peers: Peers | null = null,
): Credential {
  const { headers } = request
  if (isUpgrade(request)) {
    const token = new URL(request.url).searchParams.get('token') || readProtocolToken(headers)
    if (token) return readToken(token)
  }
  const key = headers.get('x-api-key')
  if (key) return { kind: 'api-key', key }
  const authorization = headers.get('authorization')
  const bearer = authorization && /^bearer +(.+)$/i.exec(authorization)?.[1]
  if (!bearer) {
    const key = authorization && keyScheme.exec(authorization)?.[1]
    return key ? readToken(key) : readSession(request, rules, peers)
  }
  if (!rules.bearerKeys && bearer.startsWith(apiKeyPrefix)) {
    throw new AppError('invalid_token', notThreeParts)
  }
  return readToken(bearer)
}

type CredentialRules = {
  readonly bearerKeys: boolean
  /** The origin of the gateway as the browser sees it. */
  readonly originOf: (request: Request, peers: Peers | null) => string
}

/** Throws `csrf_refused` if another site may have sent the cookie. */
function readSession(
  request: Request,
  { originOf }: CredentialRules,
  peers: Peers | null,
): Credential {
  if (!request.headers.has('cookie')) throw new AppError('missing_credentials', howToSend)
  const origin = originOf(request, peers)
  const secret = readCookie(request, cookieName('session', origin))
  if (!secret) throw new AppError('missing_credentials', howToSend)
  requireSameOrigin(request, { origin, isUpgrade: isUpgrade(request) })
  return { kind: 'session', secret }
}

export function isUpgrade({ headers }: Request): boolean {
  return headers.get('upgrade')?.toLowerCase() === 'websocket'
}

/** How speech clients send a key. */
const keyScheme = /^token +(\S+)$/i

const keyProtocol = 'openai-insecure-api-key.'
/** Speech clients send the kind of their credential and the credential as two subprotocols. */
const credentialKinds = ['token', 'bearer']

function readProtocolToken(headers: Headers): string | null {
  const protocols = readProtocols(headers)
  const [kind = '', credential] = protocols
  if (credentialKinds.includes(kind) && credential !== undefined) return credential
  const protocol = protocols.find((name) => name.startsWith(keyProtocol))
  return protocol?.slice(keyProtocol.length) ?? null
}

/**
 * The subprotocol of the handshake response, null if none was offered. Browsers disconnect if none
 * of theirs is selected; the one that contains a key is repeated only if there is no other.
 */
export function chooseProtocol({ headers }: Request): string | null {
  const offered = readProtocols(headers)
  return offered.find((name) => !name.startsWith(keyProtocol)) ?? offered[0] ?? null
}

function readProtocols(headers: Headers): string[] {
  const offered = (headers.get('sec-websocket-protocol') ?? '').split(',')
  return offered.map((name) => name.trim()).filter((name) => name !== '')
}

/** A bare token is an API key or a JWT. */
export function readToken(token: string): Credential {
  if (token === '') throw new AppError('missing_credentials', howToSend)
  return token.startsWith(apiKeyPrefix) ? { kind: 'api-key', key: token } : { kind: 'jwt', token }
}
