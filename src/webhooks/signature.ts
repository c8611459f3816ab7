import { createHmac, randomBytes } from 'node:crypto'

/** Signatures of Standard Webhooks: an HMAC-SHA256 of id, time and body. */

const prefix = 'whsec_'
const secretBytes = 32
const hintChars = 4

export function newSecret(): string {
  return prefix + randomBytes(secretBytes).toString('base64')
}

/** What may be shown of a secret. */
export function hintOf(secret: string): string {
  return `${prefix}…${secret.replace(/=+$/, '').slice(-hintChars)}`
}

type Signed = { readonly id: string; readonly timestampS: number; readonly body: string }

/** The headers of one attempt; during a rotation, both secrets sign. */
export function signedHeaders(
  { id, timestampS, body }: Signed,
  secrets: readonly string[],
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64')
    const text = `${id}.${timestampS}.${body}`
    return `v1,${createHmac('sha256', key).update(text).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatures.join(' '),
  }
}
