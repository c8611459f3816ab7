import { type Static, Type } from '@sinclair/typebox'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import type { KeyRecord } from '#auth/key-store.ts'
import { readLabel } from '#lib/label.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

/** The body of `POST /v1/api-keys`. */
export const newApiKey = Type.Object(
  {
    name: Type.String({ description: 'A label of 1 to 100 characters.' }),
    expires_at: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: 'When the key expires: ISO 8601 in UTC; null or absent for never.',
      }),
    ),
  },
  { additionalProperties: false },
)

const fields = {
  id: Type.String({ format: 'uuid' }),
  name: Type.String(),
  masked: Type.String({ description: 'The key with its secret part hidden.' }),
  created_at: instant('When it was created'),
  expires_at: nullable(Type.String({ format: 'date-time' }), 'When it expires.'),
}

/** An API key as its owner sees it. */
export const apiKeyRecord = Type.Object(
  {
    ...fields,
    last_used_at: nullable(Type.String({ format: 'date-time' }), 'Its last use, to the minute.'),
  },
  { $id: 'ApiKey' },
)

/** The only response that contains the key itself. */
export const createdApiKey = Type.Object(
  {
    ...fields,
    key: Type.String({ description: 'The key: `sk-svc-v1-…`. It is shown only once.' }),
  },
  { $id: 'CreatedApiKey' },
)

export const apiKeyExample = {
  id: idExample,
  name: 'nightly report',
  masked: 'sk-svc-v1-****************4f2a',
  created_at: instantExample,
  expires_at: null,
}

const checker = compileChecker(newApiKey)
const utcInstant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?Z$/

export type NewApiKey = { readonly name: string; readonly expiresAt: Date | null }

/** Throws an `AppError` of status 422. */
export function readNewApiKey(body: unknown, now: Date): NewApiKey {
  if (!checker.check(body)) throw refusedBySchema(checker.firstError(body))
  return { name: readLabel(body.name), expiresAt: readExpiry(body.expires_at ?? null, now) }
}

function readExpiry(text: string | null, now: Date): Date | null {
  if (text === null) return null
  const expiry = new Date(text)
  // February 30 parses as a day of March.
  const isRealDate =
    utcInstant.test(text) &&
    !Number.isNaN(expiry.getTime()) &&
    expiry.toISOString().startsWith(text.slice(0, 10))
  if (!isRealDate) {
    throw refused('expires_at', '"expires_at" must be a time in UTC such as 2030-01-31T12:00:00Z.')
  }
  if (expiry <= now) throw refused('expires_at', '"expires_at" must be in the future.')
  return expiry
}

export function renderApiKey(record: KeyRecord): Static<typeof apiKeyRecord> {
  return { ...renderFields(record), last_used_at: record.lastUsedAt?.toISOString() ?? null }
}

export function renderCreatedApiKey(
  record: KeyRecord & { key: string },
): Static<typeof createdApiKey> {
  return { ...renderFields(record), key: record.key }
}

function renderFields({ id, name, masked, createdAt, expiresAt }: KeyRecord) {
  return {
    id,
    name,
    masked,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
  }
}
