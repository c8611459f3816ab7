import { randomBytes } from 'node:crypto'

export const apiKeyPrefix = 'sk-svc-v1-'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^43 is a little more than 2^256. */
const secretChars = 43
/** 62^6 is more than 2^32: the CRC-32 of the secret, by which scanners recognise a key. */
const checksumChars = 6
const shape = new RegExp(
  `^${apiKeyPrefix}([0-9A-Za-z]{${secretChars}})([0-9A-Za-z]{${checksumChars}})$`,
)
const visibleChars = 4

export function createApiKey(): string {
  const secret = randomBase62(secretChars)
  return `${apiKeyPrefix}${secret}${checksum(secret)}`
}

/** Whether a text has the form of a key; detects typing errors without the database. */
export function isApiKey(text: string): boolean {
  const [, secret, sum] = shape.exec(text) ?? []
  return secret !== undefined && checksum(secret) === sum
}

/**
 * The stored form of a key. A fast hash is enough, because 256 random bits cannot be guessed. With a
 * pepper, which is kept outside the database, a stolen table is useless.
 */
export function hashApiKey(key: string, pepper: string | undefined): Buffer {
  return new Bun.CryptoHasher('sha256', pepper).update(key).digest()
}

/** The form of a key that may be shown after its creation. */
export function maskApiKey(key: string): string {
  return `${apiKeyPrefix}${'*'.repeat(8)}${key.slice(-visibleChars)}`
}

function checksum(secret: string): string {
  let rest = Bun.hash.crc32(secret)
  let digits = ''
  for (let index = 0; index < checksumChars; index++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits
    rest = Math.floor(rest / alphabet.length)
  }
  return digits
}

function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 = 4 · 62; taking the remainder of the bytes above would favour the first digits.
      if (byte < 248 && text.length < length) text += alphabet.charAt(byte % alphabet.length)
    }
  }
  return text
}
