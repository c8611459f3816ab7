import type { Permission } from './permissions.ts'

/** Who is calling, and what they may do at this moment. */
export type Principal = {
  /** Ours, a UUID; the same for a person's tokens and API keys. */
  readonly userId: string
  /** The `sub` of the identity provider; of a service account, what stands in its place. */
  readonly subject: string
  /** As the token, or the maker of a service account, calls them. */
  readonly name: string | null
  readonly groups: readonly string[]
  readonly permissions: ReadonlySet<Permission>
  readonly credential:
    | { readonly kind: 'jwt' }
    | { readonly kind: 'api-key'; readonly keyId: string }
}

/** What the subjects of service accounts begin with; a token with such a subject is refused. */
const servicePrefix = 'sluice-service:'
const serviceSubject = /^sluice-service:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

export function serviceSubjectOf(userId: string): string {
  return servicePrefix + userId
}

export function isServiceSubject(subject: string): boolean {
  return subject.startsWith(servicePrefix)
}

/**
 * A subject's id. It is computed, not looked up, so that a token needs no database. The form is
 * that of a UUID of version 8 (RFC 9562: a hash of one's own). The subject of a service account
 * holds its id.
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
