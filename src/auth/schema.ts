import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'

/** The body of `POST /v1/api-keys`. */
export const createKeyBody = Type.Object(
  {
    name: Type.String({ description: 'A label of 1 to 100 characters.' }),
    expires_at: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: 'When the key stops working: ISO 8601 in UTC; null or absent for never.',
      }),
    ),
  },
  { additionalProperties: false },
)

const keyFields = {
  id: Type.String({ format: 'uuid' }),
  name: Type.String(),
  masked: Type.String({ description: 'The key, as far as it may be shown.' }),
  created_at: instant('When it was made'),
  expires_at: nullable(Type.String({ format: 'date-time' }), 'When it stops working.'),
}

/** An API key as its owner sees it. */
export const apiKeyRecord = Type.Object(
  {
    ...keyFields,
    last_used_at: nullable(
      Type.String({ format: 'date-time' }),
      'When it was last used, to the minute.',
    ),
  },
  { $id: 'ApiKey' },
)
export type ApiKeyRecord = Static<typeof apiKeyRecord>

/** The only answer that holds the key itself. */
export const createdApiKey = Type.Object(
  { ...keyFields, key: Type.String({ description: 'The key: `sk-svc-v1-…`. Shown this once.' }) },
  { $id: 'CreatedApiKey' },
)

const nameCharsMax = 100
const pageSize = { default: 20, max: 100 }

const checker = compileChecker(createKeyBody)
const utcInstant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?Z$/

/** What is asked for in the body of a creation; throws an `AppError` of status 422. */
export function parseCreateKey(body: unknown, now: Date): { name: string; expiresAt: Date | null } {
  if (!checker.check(body)) throw refusedBySchema(checker.firstError(body))
  return { name: parseLabel(body.name), expiresAt: parseExpiry(body.expires_at ?? null, now) }
}

/** One page of a list; throws an `AppError` of status 422. */
export function parsePage(
  query: Readonly<Record<string, string | undefined>>,
  isId: (text: string) => boolean = isUuid,
): { limit: number; after: string | undefined } {
  const { limit = String(pageSize.default), after } = query
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > pageSize.max) {
    throw refused('limit', `"limit" must be a whole number from 1 to ${pageSize.max}.`)
  }
  if (after !== undefined && !isId(after)) {
    throw refused('after', '"after" must be the id of the last item of the page before.')
  }
  return { limit: Number(limit), after }
}

/** A name that people read, in the field `name`; throws an `AppError` of status 422. */
export function parseLabel(given: string): string {
  const name = given.trim()
  if (name.length < 1 || name.length > nameCharsMax) {
    throw refused('name', `"name" must have 1 to ${nameCharsMax} characters.`)
  }
  // Cc: control characters, which no database row and no list on a screen should hold.
  if (/\p{Cc}/u.test(name) || !name.isWellFormed()) {
    throw refused('name', '"name" must be plain text on one line.')
  }
  return name
}

function parseExpiry(given: string | null, now: Date): Date | null {
  if (given === null) return null
  const expiry = new Date(given)
  // The 30th of February parses, as another day.
  const isReal = utcInstant.test(given) && isSameDay(given, expiry)
  if (!isReal) {
    throw refused('expires_at', '"expires_at" must be a time in UTC such as 2030-01-31T12:00:00Z.')
  }
  if (expiry <= now) throw refused('expires_at', '"expires_at" must be in the future.')
  return expiry
}

function isSameDay(text: string, date: Date): boolean {
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text.slice(0, 10))
}
