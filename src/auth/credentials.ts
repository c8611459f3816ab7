import { AppError } from '#lib/errors.ts'
import { apiKeyPrefix } from './api-keys.ts'

export type Credential =
  | { readonly kind: 'api-key'; readonly key: string }
  | { readonly kind: 'jwt'; readonly token: string }

/** The words of the gateway that platforms before 1.2.1 put in front; clients match on them. */
export const notThreeParts = 'Jwt is not in the form of Header.Payload.Signature'

const howToSend =
  'Send a credential: "Authorization: Bearer <token or API key>" or "X-Api-Key: <API key>".'

/**
 * The one credential of a request that counts. `X-Api-Key` comes first and there is no falling
 * back: a bad key next to a good token is a bad key. A WebSocket, whose client often cannot set
 * headers, may carry it in the query parameter `token`, or as the SDKs for browsers do, in the name
 * of a subprotocol.
 */
export function readCredential(request: Request, rules: { bearerKeys: boolean }): Credential {
  const { headers } = request
  if (asksForSocket(request)) {
    const token = new URL(request.url).searchParams.get('token') ?? readProtocolToken(headers)
    if (token !== null) return readToken(token)
  }
  const key = headers.get('x-api-key')
  if (key !== null) return { kind: 'api-key', key }
  const authorization = headers.get('authorization')
  const bearer = authorization && /^bearer +(.+)$/i.exec(authorization)?.[1]
  if (!bearer) throw new AppError('missing_credentials', howToSend)
  if (!rules.bearerKeys && bearer.startsWith(apiKeyPrefix)) {
    throw new AppError('invalid_token', notThreeParts)
  }
  return readToken(bearer)
}

export function asksForSocket({ headers }: Request): boolean {
  return headers.get('upgrade')?.toLowerCase() === 'websocket'
}

const keyProtocol = 'openai-insecure-api-key.'

function readProtocolToken(headers: Headers): string | null {
  const protocol = readProtocols(headers).find((name) => name.startsWith(keyProtocol))
  return protocol?.slice(keyProtocol.length) ?? null
}

/**
 * The subprotocol to answer a handshake with, null where none was offered. A browser goes away when
 * none of its own is answered; the one that holds a key is repeated only where there is no other.
 */
export function chooseProtocol({ headers }: Request): string | null {
  const offered = readProtocols(headers)
  return offered.find((name) => !name.startsWith(keyProtocol)) ?? offered[0] ?? null
}

function readProtocols(headers: Headers): string[] {
  const offered = (headers.get('sec-websocket-protocol') ?? '').split(',')
  return offered.map((name) => name.trim()).filter((name) => name !== '')
}

/** What kind of credential a bare token is. */
export function readToken(token: string): Credential {
  if (token === '') throw new AppError('missing_credentials', howToSend)
  return token.startsWith(apiKeyPrefix) ? { kind: 'api-key', key: token } : { kind: 'jwt', token }
}

/** Before 1.2.1 the platform's gateway took every bearer value for a JWT. */
export function takesBearerKeys(platformVersion: string): boolean {
  return Bun.semver.order(platformVersion, '1.2.1') >= 0
}
