import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { AppError } from '#lib/errors.ts'
import { createSealingStore, type SealingDatabase } from './store.ts'

/**
 * Authenticated encryption of state that clients keep, so that nothing is stored here. A sealed text is
 * bound to one owner and one purpose, and is ASCII without spaces.
 */
export type Sealer = {
  seal(purpose: SealPurpose, ownerId: string, plain: string): string
  /**
   * The plain text; null for a text of another service. Throws `invalid_encrypted_content` for a
   * sealed text that was altered, has another owner or purpose, or whose key is not configured.
   */
  open(purpose: SealPurpose, ownerId: string, sealed: string): string | null
  /** A URL-safe signature. */
  sign(purpose: SignaturePurpose, text: string): string
  /** Accepts the signatures of all configured keys. */
  hasSigned(purpose: SignaturePurpose, text: string, signature: string): boolean
}

/**
 * `request`: the body of a queued background request, which may hold credentials; `login`: the state of a
 * login, and the tokens of the identity provider behind a session; `refresh`: the key that a device may renew;
 * `webhook`: a signing secret, whose
 * owner is its endpoint.
 */
type SealPurpose =
  | 'reasoning'
  | 'compaction'
  | 'search'
  | 'request'
  | 'login'
  | 'refresh'
  | 'webhook'

/** `logo`: a link to the portal's logo, which an `<img>` loads without a credential. */
type SignaturePurpose = 'logo'

/** A sealed text is `sluice1.<key id>.<nonce, cipher text and tag in base64url>`. */
const prefix = 'sluice1.'
const cipher = 'aes-256-gcm'
const keyBytes = 32
const keyIdBytes = 6
const nonceBytes = 12
const tagBytes = 16
/** Of a generated secret. */
const secretBytes = 32

/**
 * The sealer of this deployment. `sealKeys` are comma-separated secrets: the first one encrypts, all
 * decrypt. Without any, a secret in the database encrypts; it is generated on the first start and
 * keeps decrypting after keys are configured.
 */
export async function createSealer(options: {
  sealKeys: string | undefined
  database: SealingDatabase
}): Promise<Sealer> {
  const store = createSealingStore(options.database)
  const configured = splitSealKeys(options.sealKeys ?? '')
  const stored =
    configured.length === 0
      ? await store.insertSecret(randomBytes(secretBytes).toString('base64url'))
      : await store.findSecret()
  return createSealerOf(stored === undefined ? configured : [...configured, stored])
}

function splitSealKeys(sealKeys: string): string[] {
  const secrets = sealKeys.split(',').map((secret) => secret.trim())
  return secrets.filter((secret) => secret !== '')
}

type Key = { readonly id: string; readonly bytes: Buffer; readonly signing: Buffer }

/** Encrypts and signs with the first secret; decrypts and verifies with all. */
export function createSealerOf(secrets: readonly string[]): Sealer {
  const keys = new Map(secrets.map(deriveKey).map((key) => [key.id, key]))
  const [current] = keys.values()
  if (current === undefined) throw new Error('no encryption key')
  return {
    seal: (purpose, ownerId, plain) => sealWith(current, [purpose, ownerId], plain),
    open(purpose, ownerId, sealed) {
      if (!sealed.startsWith(prefix)) return null
      const idEnd = sealed.indexOf('.', prefix.length)
      const key = keys.get(sealed.slice(prefix.length, Math.max(idEnd, prefix.length)))
      if (key === undefined) throw undecryptable()
      return openWith(key, [purpose, ownerId], sealed.slice(idEnd + 1))
    },
    sign: (purpose, text) => signWith(current, purpose, text),
    hasSigned: (purpose, text, signature) =>
      [...keys.values()].some((key) => isEqual(signWith(key, purpose, text), signature)),
  }
}

/** The id identifies a key and reveals nothing about it. */
function deriveKey(secret: string): Key {
  const derive = (use: string, length: number) =>
    Buffer.from(hkdfSync('sha256', secret, '', `sluice seal ${use}`, length))
  return {
    id: derive('key id', keyIdBytes).toString('hex'),
    bytes: derive('key', keyBytes),
    signing: derive('signing key', keyBytes),
  }
}

function signWith({ signing }: Key, purpose: SignaturePurpose, text: string): string {
  return createHmac('sha256', signing).update(`${purpose}\0${text}`).digest('base64url')
}

/** In constant time for texts of the same length. */
function isEqual(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)]
  return one.length === other.length && timingSafeEqual(one, other)
}

type Binding = readonly [purpose: SealPurpose, ownerId: string]

function sealWith(key: Key, binding: Binding, plain: string): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, key.bytes, nonce, { authTagLength: tagBytes })
  sealing.setAAD(boundData(key, binding))
  const parts = [nonce, sealing.update(plain, 'utf8'), sealing.final(), sealing.getAuthTag()]
  return `${prefix}${key.id}.${Buffer.concat(parts).toString('base64url')}`
}

function openWith(key: Key, binding: Binding, text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  // Rejects other spellings: the last character may carry unused bits.
  if (bytes.length < nonceBytes + tagBytes || bytes.toString('base64url') !== text) {
    throw undecryptable()
  }
  const nonce = bytes.subarray(0, nonceBytes)
  const opening = createDecipheriv(cipher, key.bytes, nonce, { authTagLength: tagBytes })
  opening.setAAD(boundData(key, binding))
  opening.setAuthTag(bytes.subarray(-tagBytes))
  try {
    const start = opening.update(bytes.subarray(nonceBytes, -tagBytes))
    return Buffer.concat([start, opening.final()]).toString('utf8')
  } catch (cause) {
    throw undecryptable(cause)
  }
}

function boundData(key: Key, binding: Binding): Buffer {
  return Buffer.from(JSON.stringify([prefix, key.id, ...binding]))
}

function undecryptable(cause?: unknown): AppError {
  return new AppError(
    'invalid_encrypted_content',
    'The encrypted content cannot be decrypted: it was altered, belongs to another user or use, or its key is no longer configured.',
    { cause },
  )
}
