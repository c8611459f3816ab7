import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { freePort } from './free-port.ts'

export type SigningKey = {
  readonly kid: string
  readonly alg: 'RS256' | 'ES256' | 'EdDSA'
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export type TokenParts = {
  header?: Record<string, unknown>
  claims?: Record<string, unknown>
}

/** A key set on a real HTTP server, which can change, stop and misbehave. */
export type IdentityProvider = {
  readonly jwksUrl: string
  readonly issuer: string
  /** The number of requests for the key set. */
  requestCount(): number
  publish(keys: readonly SigningKey[]): void
  /** From now on, responds with this instead of the key set. */
  answerWith(answer: () => Response | Promise<Response>): void
  goDown(): Promise<void>
  comeUp(): void
  stop(): Promise<void>
}

export function createSigningKey(kid: string, alg: SigningKey['alg'] = 'RS256'): SigningKey {
  return { kid, alg, ...generatePair(alg) }
}

export function startIdentityProvider(keys: readonly SigningKey[]): IdentityProvider {
  let published = keys
  let requests = 0
  let answer: (() => Response | Promise<Response>) | undefined
  const port = freePort()
  const listen = () =>
    Bun.serve({
      hostname: '127.0.0.1',
      port,
      fetch() {
        requests += 1
        return answer === undefined ? Response.json({ keys: published.map(toJwk) }) : answer()
      },
    })
  let server = listen()
  const { origin } = server.url
  return {
    jwksUrl: `${origin}/jwks`,
    issuer: origin,
    requestCount: () => requests,
    publish(next) {
      published = next
      answer = undefined
    },
    answerWith(next) {
      answer = next
    },
    goDown: () => server.stop(true),
    comeUp() {
      server = listen()
    },
    stop: () => server.stop(true),
  }
}

/** A token with exactly these parts, valid or not, signed by a key of the provider. */
export function signToken(key: SigningKey, parts: TokenParts): string {
  const header = { typ: 'JWT', alg: key.alg, kid: key.kid, ...parts.header }
  const input = signingInput(header, parts.claims)
  return `${input}.${signatureOf(key, input).toString('base64url')}`
}

/** A token under a shared secret; `alg` in the header does not change how it is signed. */
export function signWithSecret(secret: string | Buffer, parts: TokenParts): string {
  const input = signingInput({ typ: 'JWT', alg: 'HS256', ...parts.header }, parts.claims)
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

/** An unsigned token (`alg: none`). */
export function unsignedToken(parts: TokenParts): string {
  return `${signingInput({ typ: 'JWT', alg: 'none', ...parts.header }, parts.claims)}.`
}

function signingInput(header: unknown, claims: unknown): string {
  const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url')
  return `${encode(header)}.${encode(claims ?? {})}`
}

function generatePair(alg: SigningKey['alg']) {
  switch (alg) {
    case 'RS256':
      return generateKeyPairSync('rsa', { modulusLength: 2048 })
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' })
    case 'EdDSA':
      return generateKeyPairSync('ed25519')
  }
}

function signatureOf({ alg, privateKey }: SigningKey, input: string): Buffer {
  const digest = alg === 'EdDSA' ? null : 'sha256'
  return sign(digest, Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
}

export function toJwk({ kid, alg, publicKey }: SigningKey) {
  return { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' }
}
