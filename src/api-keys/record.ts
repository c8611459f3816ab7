import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '#api/request-schema.ts'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import type { KeyWithSecret, NewApiKey } from '#auth/api-keys.ts'
import type { KeyChange, KeyRecord } from '#auth/key-store.ts'
import { scopeNames, sortScopes } from '#auth/scopes.ts'
import { parseInstant } from '#lib/instant.ts'
import { isStorable, readLabel } from '#lib/label.ts'
import { networkFault } from '#lib/networks.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import { limitValues } from '#limits/config.ts'

const modelsMax = 100
const modelCharsMax = 256
const networksMax = 100
const networkCharsMax = 64

const expiresAt = Type.Union([Type.String(), Type.Null()], {
  description: 'When the key expires: ISO 8601 in UTC; null or absent for never.',
})

const keyLimits = Type.Object(limitValues.properties, {
  $id: 'ApiKeyLimits',
  additionalProperties: false,
})

/** What a key is restricted to. */
const rights = {
  models: nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: modelCharsMax }), {
      minItems: 1,
      maxItems: modelsMax,
    }),
    'The models and agents that the key may use: names and patterns, in which `*` stands for any characters. Null: every model of its owner. A list never adds a right.',
  ),
  scopes: nullable(
    Type.Array(oneOf(scopeNames, 'The kind of endpoints.'), { minItems: 1 }),
    'The kinds of endpoints that the key may use. Null: everything that its owner may do.',
  ),
  allowed_ips: nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: networkCharsMax }), {
      minItems: 1,
      maxItems: networksMax,
    }),
    'The addresses and networks that the key may be used from, such as `192.0.2.7` and `2001:db8::/32`; from others, requests are refused with 403 `ip_not_allowed`. Null: any.',
  ),
  limits: nullable(keyLimits, 'Limits of this key beside those of its owner.'),
}

const name = Type.String({ description: 'A label of 1 to 100 characters.' })

/** The body of `POST /v1/api-keys`. */
export const newApiKey = Type.Object(
  { name, expires_at: Type.Optional(expiresAt), ...Type.Partial(Type.Object(rights)).properties },
  { additionalProperties: false },
)

/** The body of `PATCH /v1/api-keys/{id}`. */
export const changedApiKey = Type.Partial(newApiKey, { additionalProperties: false })

const overlapDefaultS = 86_400
const overlapMaxS = 2_592_000

/** The body of `POST /v1/api-keys/{id}/rotate`. */
export const rotation = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        description: 'How long the present secret still works.',
        minimum: 0,
        maximum: overlapMaxS,
        default: overlapDefaultS,
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
  user_id: Type.String({ format: 'uuid', description: 'Its owner.' }),
  ...rights,
  rotated_at: nullable(Type.String({ format: 'date-time' }), 'When its secret was last replaced.'),
  previous_expires_at: nullable(
    Type.String({ format: 'date-time' }),
    'Until when the replaced secret works.',
  ),
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
  user_id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35',
  models: ['llama-*'],
  scopes: ['inference' as const],
  allowed_ips: null,
  limits: null,
  rotated_at: null,
  previous_expires_at: null,
}

const newKeyChecker = compileChecker(newApiKey)
const changeChecker = compileChecker(changedApiKey)
const rotationChecker = compileChecker(rotation)
const inUtc = /T.*Z$/

/** Throws an `AppError` of status 422. */
export function readNewApiKey(body: unknown, now: Date): NewApiKey {
  if (!newKeyChecker.check(body)) throw refusedBySchema(newKeyChecker.firstError(body))
  const change = readFields(body, now)
  const unrestricted = {
    expiresAt: null,
    models: null,
    scopes: null,
    allowedIps: null,
    limits: null,
  }
  return { ...unrestricted, ...change, name: readLabel(body.name) }
}

/** Throws an `AppError` of status 422. */
export function readKeyChange(body: unknown, now: Date): KeyChange {
  if (!changeChecker.check(body)) throw refusedBySchema(changeChecker.firstError(body))
  return readFields(body, now)
}

/** The seconds that the present secret still works; throws an `AppError` of status 422. */
export function readRotation(body: unknown): number {
  if (!rotationChecker.check(body)) throw refusedBySchema(rotationChecker.firstError(body))
  return body.overlap_seconds ?? overlapDefaultS
}

/** The fields that a body has. */
function readFields(body: Static<typeof changedApiKey>, now: Date): KeyChange {
  const { name, expires_at, models, scopes, allowed_ips: allowedIps, limits } = body
  return {
    ...(name === undefined ? {} : { name: readLabel(name) }),
    ...(expires_at === undefined ? {} : { expiresAt: readExpiry(expires_at, now) }),
    ...(models === undefined ? {} : { models: models && readModels(models) }),
    ...(scopes === undefined ? {} : { scopes: scopes && sortScopes(scopes) }),
    ...(allowedIps === undefined ? {} : { allowedIps: allowedIps && readNetworks(allowedIps) }),
    ...(limits === undefined ? {} : { limits }),
  }
}

function readModels(models: readonly string[]): string[] {
  const invalid = models.findIndex((name) => !isStorable(name))
  if (invalid !== -1) {
    throw refused(`models[${invalid}]`, `"models[${invalid}]" must be a name or a pattern.`)
  }
  return [...new Set(models)]
}

function readNetworks(texts: readonly string[]): string[] {
  for (const [at, text] of texts.entries()) {
    const fault = networkFault(text)
    if (fault !== null) throw refused(`allowed_ips[${at}]`, `"allowed_ips[${at}]" ${fault}.`)
  }
  return [...new Set(texts)]
}

function readExpiry(text: string | null, now: Date): Date | null {
  if (text === null) return null
  const expiry = inUtc.test(text) ? parseInstant(text) : null
  if (expiry === null) {
    throw refused('expires_at', '"expires_at" must be a time in UTC such as 2030-01-31T12:00:00Z.')
  }
  if (expiry <= now) throw refused('expires_at', '"expires_at" must be in the future.')
  return expiry
}

export function renderApiKey(record: KeyRecord): Static<typeof apiKeyRecord> {
  return { ...renderFields(record), last_used_at: record.lastUsedAt?.toISOString() ?? null }
}

export function renderCreatedApiKey(record: KeyWithSecret): Static<typeof createdApiKey> {
  return { ...renderFields(record), key: record.key }
}

function renderFields(record: KeyRecord) {
  const { id, name, masked, userId, createdAt, expiresAt, models, scopes, allowedIps, limits } =
    record
  return {
    id,
    name,
    masked,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
    user_id: userId,
    models: models && [...models],
    scopes: scopes && [...scopes],
    allowed_ips: allowedIps && [...allowedIps],
    limits,
    rotated_at: record.rotatedAt?.toISOString() ?? null,
    previous_expires_at: record.previousExpiresAt?.toISOString() ?? null,
  }
}
