import type { Permission } from './permissions.ts'

/** Who is calling, and what they may do at this moment. */
export type Principal = {
  /** Ours, a UUID; the same for a person's tokens and API keys. */
  readonly userId: string
  /** The `sub` of the identity provider. */
  readonly subject: string
  readonly groups: readonly string[]
  readonly permissions: ReadonlySet<Permission>
  readonly credential:
    | { readonly kind: 'jwt' }
    | { readonly kind: 'api-key'; readonly keyId: string }
}

/**
 * A subject's id. It is computed, not looked up, so that a token needs no database. The form is
 * that of a UUID of version 8 (RFC 9562: a hash of one's own).
 */
export function userIdOf(subject: string): string {
  const digest = new Bun.CryptoHasher('sha256').update(`sluice user\0${subject}`).digest()
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x80, 6)
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = digest.toString('hex', 0, 16)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
