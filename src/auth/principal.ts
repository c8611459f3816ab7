import { AppError } from '#lib/errors.ts'
import type { Networks } from '#lib/networks.ts'
import type { LimitValues } from '#limits/config.ts'
import type { Permission } from './permissions.ts'
import type { Scope } from './scopes.ts'

/** An authenticated caller with current permissions. */
export type Principal = {
  /** A UUID, the same for the tokens and API keys of a person. */
  readonly userId: string
  /** The `sub` of the identity provider, or the subject of a service account. */
  readonly subject: string
  /** From the token, or as the service account was named. */
  readonly name: string | null
  readonly groups: readonly string[]
  readonly permissions: ReadonlySet<Permission>
  readonly credential: TokenCredential | KeyCredential
}

/** A token of the identity provider, or the session of a browser that it began. */
type TokenCredential = {
  readonly kind: 'jwt'
  readonly session?: {
    readonly id: string
    readonly method: LoginMethod
    readonly createdAt: Date
    readonly expiresAt: Date
  }
}

/** At an identity provider, with a token, or with the code of a printed link. */
export type LoginMethod = 'oidc' | 'token' | 'code'

/** An API key and what it is restricted to; null: not at all. */
export type KeyCredential = {
  readonly kind: 'api-key'
  readonly keyId: string
  /** Names and patterns of models. */
  readonly models: readonly string[] | null
  readonly scopes: readonly Scope[] | null
  /** Where requests with it may come from. */
  readonly allowedIps: Networks | null
  /** These apply beside the limits of its owner. */
  readonly limits: LimitValues | null
}

/** What a credential says about its principal, without the rights of this moment. */
export type Bearer = Omit<Principal, 'groups' | 'permissions'>

const principals = new WeakMap<Bearer, Principal>()

/** Built anew only when the rights have changed, since every request of a cached credential needs it. */
export function principalOf(
  bearer: Bearer,
  rights: Pick<Principal, 'groups' | 'permissions'>,
): Principal {
  const known = principals.get(bearer)
  if (known?.permissions === rights.permissions) return known
  const principal = { ...bearer, ...rights }
  principals.set(bearer, principal)
  return principal
}

/** The prefix of subjects of service accounts; a token with such a subject is refused. */
const servicePrefix = 'sluice-service:'
const serviceSubject = /^sluice-service:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

export function serviceSubjectOf(userId: string): string {
  return servicePrefix + userId
}

export function isServiceSubject(subject: string): boolean {
  return subject.startsWith(servicePrefix)
}

/**
 * The user id of a subject. It is computed, so that a token needs no database: a UUID of version 8
 * (RFC 9562) from a hash. The subject of a service account contains its id.
 */
export function userIdOf(subject: string): string {
  const [, serviceId] = serviceSubject.exec(subject) ?? []
  if (serviceId !== undefined) return serviceId
  const digest = new Bun.CryptoHasher('sha256').update(`sluice user\0${subject}`).digest()
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x80, 6)
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = digest.toString('hex', 0, 16)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** A valid credential of a user that an administrator disabled. */
export function userDisabled(
  kind: 'invalid_token' | 'invalid_api_key' | 'invalid_session',
): AppError {
  return new AppError(kind, 'This user was disabled by an administrator.', {
    code: 'user_disabled',
  })
}
