import { jwt } from '@elysiajs/jwt'
import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose'
import type { Config } from '#config/schema.ts'
import { assert } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Log } from '#telemetry/log.ts'
import { notThreeParts } from './credentials.ts'
import { createKeySet, type KeySet } from './jwks.ts'
import { isServiceSubject } from './principal.ts'

/** The claims of a verified token. */
export type TokenClaims = {
  subject: string
  /** A display name on one line, if the token has one. */
  name: string | null
  groups: readonly string[]
  /** Unix seconds; 0 without the claim. */
  issuedAtS: number
  expiresAtS: number
}

export type TokenVerifier = ReturnType<typeof createTokenVerifier>

export type TokenVerifierOptions = {
  settings: Config['jwt']
  now: () => Date
  fetch: typeof fetch
  log: Pick<Log, 'warn' | 'info'>
}

const tokenBytesMax = 16_384
const groupsMax = 256
const nameCharsMax = 255
/** Headers that make verifiers fetch keys, trust embedded keys, or handle unknown extensions. */
const refusedHeaders = ['jku', 'jwk', 'x5u', 'crit']

/** The signer and verifier of tokens under a shared secret. */
function secretTokens(secret: string) {
  return jwt({ name: 'jwt', secret }).decorator.jwt
}

/** A token like one of an identity provider, signed with the configured secret. */
export async function signDevelopmentToken(
  { jwt: settings }: Pick<Config, 'jwt'>,
  bearer: { subject: string; groups: readonly string[]; validS: number; now: Date },
): Promise<string> {
  assert(settings.secret, 'a JWT secret is configured')
  return secretTokens(settings.secret).sign({
    sub: bearer.subject,
    [settings.groupsClaim]: [...bearer.groups],
    exp: unixSeconds(bearer.now) + bearer.validS,
    ...(settings.issuer === undefined ? {} : { iss: settings.issuer }),
    ...(settings.audience === undefined ? {} : { aud: settings.audience }),
  })
}

/**
 * HS256 tokens are verified with the secret, all others with the key set of the provider, never the
 * other way round: with a public key as an HMAC secret anyone could sign.
 */
export function createTokenVerifier(options: TokenVerifierOptions) {
  let trust = trustOf(options)
  /** Of the key sets and settings before the present ones. */
  let formerVersions = 0

  async function payloadOf(token: string): Promise<JWTPayload> {
    const { settings, secrets, keySet } = trust
    const header = readHeader(token)
    const given = { settings, now: options.now }
    const rules = {
      clockTolerance: settings.clockSkewS,
      currentDate: options.now(),
      requiredClaims: ['exp'],
      ...(settings.issuer === undefined ? {} : { issuer: settings.issuer }),
      ...(settings.audience === undefined ? {} : { audience: settings.audience }),
    }
    if (header.alg === 'HS256' && secrets.length > 0) {
      for (const secret of secrets) {
        const payload = await secret.verify(token, { ...rules, algorithms: ['HS256'] })
        if (payload !== false) return { ...payload }
      }
      throw refusal(token, given)
    }
    if (keySet === undefined || !settings.algorithms.includes(header.alg)) {
      throw invalid("The token's algorithm is not accepted.")
    }
    const key = await keySet.keyFor(header)
    try {
      return (await jwtVerify(token, key, { ...rules, algorithms: [header.alg] })).payload
    } catch (cause) {
      throw refusal(token, given, cause)
    }
  }

  const version = () => formerVersions + (trust.keySet?.version() ?? 0)
  return {
    /** Rises when verified tokens may have become invalid. */
    version,
    /** Throws an `AppError`: `invalid_token`, or `service_unavailable` without a key set. */
    verify: async (token: string) =>
      readClaims(await payloadOf(token), { settings: trust.settings, now: options.now }),
    /** Trusts other secrets or keys; tokens that were verified before are verified again. */
    change(settings: Config['jwt']): void {
      const former = trust
      formerVersions = version() + 1
      trust = trustOf({ ...options, settings }, former)
      if (former.keySet !== trust.keySet) former.keySet?.close()
    },
    close: () => trust.keySet?.close(),
  }
}

type Trust = {
  readonly settings: Config['jwt']
  readonly secrets: readonly ReturnType<typeof secretTokens>[]
  readonly keySet: KeySet | undefined
}

/** The keys of the provider stay with their URL. */
function trustOf({ settings, fetch, log }: TokenVerifierOptions, former?: Trust): Trust {
  const { secret, formerSecret, jwksUrl: url, jwksAgeMaxS } = settings
  const isKept =
    former !== undefined &&
    former.settings.jwksUrl === url &&
    former.settings.jwksAgeMaxS === jwksAgeMaxS
  const openKeySet = () =>
    url === undefined ? undefined : createKeySet({ url, fetch, log, ageMaxMs: jwksAgeMaxS * 1000 })
  return {
    settings,
    secrets: [secret, formerSecret].flatMap((text) => text ?? []).map(secretTokens),
    keySet: isKept ? former.keySet : openKeySet(),
  }
}

function readHeader(token: string): { alg: string; kid?: string } {
  if (token.length > tokenBytesMax)
    throw invalid(`The token is longer than ${tokenBytesMax} bytes.`)
  if (token.split('.').length !== 3) throw invalid(notThreeParts)
  let header: ReturnType<typeof decodeProtectedHeader>
  try {
    header = decodeProtectedHeader(token)
  } catch (cause) {
    throw invalid("The token's header cannot be read.", cause)
  }
  const { alg, kid } = header
  if (typeof alg !== 'string' || (kid !== undefined && typeof kid !== 'string')) {
    throw invalid("The token's header cannot be read.")
  }
  const refused = refusedHeaders.find((name) => name in header)
  if (refused !== undefined) throw invalid(`The token's header must not contain ${refused}.`)
  return kid === undefined ? { alg } : { alg, kid }
}

/** Why a token was refused, by its claims. */
function refusal(
  token: string,
  { settings, now }: Pick<TokenVerifierOptions, 'settings' | 'now'>,
  cause?: unknown,
) {
  let claims: JWTPayload
  try {
    claims = decodeJwt(token)
  } catch {
    return invalid("The token's payload cannot be read.", cause)
  }
  const nowS = now().getTime() / 1000
  if (typeof claims.exp !== 'number') return invalid('The token has no expiry (exp).', cause)
  if (claims.exp <= nowS - settings.clockSkewS) return invalid('The token has expired.', cause)
  if (claims.nbf !== undefined && !(Number(claims.nbf) <= nowS + settings.clockSkewS)) {
    return notYetValid(cause)
  }
  if (settings.issuer !== undefined && claims.iss !== settings.issuer) {
    return invalid("The token's issuer is not trusted.", cause)
  }
  if (settings.audience !== undefined && ![claims.aud].flat().includes(settings.audience)) {
    return invalid("The token's audience is not this service.", cause)
  }
  return invalid("The token's signature is not valid.", cause)
}

/** Throws `invalid_token` for claims that no user can have. */
export function readClaims(
  payload: JWTPayload,
  { settings, now }: Pick<TokenVerifierOptions, 'settings' | 'now'>,
): TokenClaims {
  const issuedAtS = payload.iat ?? 0
  if (issuedAtS > now().getTime() / 1000 + settings.clockSkewS) throw notYetValid()
  if (!isName(payload.sub)) throw invalid('The token does not name its subject (sub).')
  // Otherwise a user who can choose their subject could impersonate a service account.
  if (isServiceSubject(payload.sub)) {
    throw invalid(
      "The token's subject is that of a service account; service accounts have API keys only.",
    )
  }
  return {
    subject: payload.sub,
    name: readName(payload),
    groups: readGroups(payload[settings.groupsClaim]),
    issuedAtS: Math.floor(issuedAtS),
    expiresAtS: payload.exp ?? 0,
  }
}

/** Claims with a display name, the preferred one first. */
const nameClaims = ['name', 'preferred_username', 'email']

function readName(payload: JWTPayload): string | null {
  for (const claim of nameClaims) {
    const value = payload[claim]
    const name = typeof value === 'string' ? value.trim() : ''
    if (isName(name) && !/\p{Cc}/u.test(name)) return name
  }
  return null
}

function readGroups(claim: unknown): readonly string[] {
  const groups: unknown[] = claim === undefined ? [] : [claim].flat()
  if (groups.length > groupsMax) throw invalid(`The token lists more than ${groupsMax} groups.`)
  if (!groups.every(isName)) throw invalid("The token's groups are not a list of names.")
  return [...new Set(groups)].sort()
}

function isName(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= nameCharsMax &&
    value.isWellFormed() &&
    // PostgreSQL text cannot contain NUL.
    !value.includes('\0')
  )
}

function notYetValid(cause?: unknown): AppError {
  return invalid('The token is not valid yet.', cause)
}

function invalid(sentence: string, cause?: unknown): AppError {
  return new AppError('invalid_token', sentence, cause === undefined ? {} : { cause })
}
