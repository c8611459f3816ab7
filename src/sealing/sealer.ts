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
 * What clients keep for us, so that nothing has to be stored here: authenticated and encrypted, for
 * one owner and one purpose. Sealed texts are ASCII without spaces.
 */
export type Sealer = {
  seal(purpose: SealPurpose, ownerId: string, plain: string): string
  /**
   * The plain text; null where this is no seal of ours at all, as when a client brings one of
   * another service. Throws `invalid_encrypted_content` for one of ours that was altered, belongs to
   * somebody else, was made for another purpose, or whose key is gone.
   */
  open(purpose: SealPurpose, ownerId: string, sealed: string): string | null
  /** A short text that only we can make of this one, fit for a URL. */
  sign(purpose: SignaturePurpose, text: string): string
  /** Whether one of our keys has signed this text for this purpose. */
  hasSigned(purpose: SignaturePurpose, text: string, signature: string): boolean
}

/** `request`: the body of a background request, which may hold credentials, until it runs. */
type SealPurpose = 'reasoning' | 'compaction' | 'request'

/** `logo`: a link to the logo of the portal, which an image on a page follows without a credential. */
type SignaturePurpose = 'logo'

/** A seal is `sluice1.<key id>.<nonce, cipher text and tag in base64url>`. */
const mark = 'sluice1.'
const cipher = 'aes-256-gcm'
const keyBytes = 32
const keyIdBytes = 6
const nonceBytes = 12
const tagBytes = 16
/** A secret that we make ourselves, in bytes. */
const secretBytes = 32

/**
 * The sealer of this deployment. `sealKeys` are secrets divided by commas: the first one seals, all
 * of them open. Without any, the one of the database seals, and is made where there is none yet;
 * with them, it still opens what it sealed before.
 */
export async function createSealer(options: {
  sealKeys: string | undefined
  database: SealingDatabase
}): Promise<Sealer> {
  const store = createSealingStore(options.database)
  const configured = splitSealKeys(options.sealKeys ?? '')
  const kept =
    configured.length === 0
      ? await store.keepSecret(randomBytes(secretBytes).toString('base64url'))
      : await store.findSecret()
  return createSealerOf(kept === undefined ? configured : [...configured, kept])
}

function splitSealKeys(sealKeys: string): string[] {
  const secrets = sealKeys.split(',').map((secret) => secret.trim())
  return secrets.filter((secret) => secret !== '')
}

type Key = { readonly id: string; readonly bytes: Buffer; readonly signing: Buffer }

/** Seals and signs by the first secret, opens and recognises by all. */
export function createSealerOf(secrets: readonly string[]): Sealer {
  const keys = new Map(secrets.map(deriveKey).map((key) => [key.id, key]))
  const [current] = keys.values()
  if (current === undefined) throw new Error('there is no key to seal with')
  return {
    seal: (purpose, ownerId, plain) => sealWith(current, [purpose, ownerId], plain),
    open(purpose, ownerId, sealed) {
      if (!sealed.startsWith(mark)) return null
      const idEnd = sealed.indexOf('.', mark.length)
      const key = keys.get(sealed.slice(mark.length, Math.max(idEnd, mark.length)))
      if (key === undefined) throw cannotOpen()
      return openWith(key, [purpose, ownerId], sealed.slice(idEnd + 1))
    },
    sign: (purpose, text) => signWith(current, purpose, text),
    hasSigned: (purpose, text, signature) =>
      [...keys.values()].some((key) => isEqual(signWith(key, purpose, text), signature)),
  }
}

/** The id tells keys apart and says nothing of them. */
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

/** Takes the same time wherever two texts of one length differ. */
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
  return `${mark}${key.id}.${Buffer.concat(parts).toString('base64url')}`
}

function openWith(key: Key, binding: Binding, text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  // One text for one seal: the last sign may carry bits that mean nothing.
  if (bytes.length < nonceBytes + tagBytes || bytes.toString('base64url') !== text) {
    throw cannotOpen()
  }
  const nonce = bytes.subarray(0, nonceBytes)
  const opening = createDecipheriv(cipher, key.bytes, nonce, { authTagLength: tagBytes })
  opening.setAAD(boundData(key, binding))
  opening.setAuthTag(bytes.subarray(-tagBytes))
  try {
    const start = opening.update(bytes.subarray(nonceBytes, -tagBytes))
    return Buffer.concat([start, opening.final()]).toString('utf8')
  } catch (cause) {
    throw cannotOpen(cause)
  }
}

function boundData(key: Key, binding: Binding): Buffer {
  return Buffer.from(JSON.stringify([mark, key.id, ...binding]))
}

function cannotOpen(cause?: unknown): AppError {
  return new AppError(
    'invalid_encrypted_content',
    'The encrypted content cannot be opened: it was altered, it was not made for this caller and this use, or its key is gone.',
    { cause },
  )
}
