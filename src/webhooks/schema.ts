import { type Static, Type } from '@sinclair/typebox'
import { createReaders } from '#api/read-object.ts'
import { arrayOf, boolean, object, oneOf, optional } from '#api/request-schema.ts'
import { nullable, unixTime } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import {
  type Delivery,
  type EventType,
  eventTypes,
  scopes,
  type WebhookEndpoint,
} from './webhooks.ts'

const nameCharsMax = 200
const urlCharsMax = 2_048

const name = () =>
  Type.String({ minLength: 1, maxLength: nameCharsMax, description: 'For people.' })
const url = () =>
  Type.String({
    minLength: 1,
    maxLength: urlCharsMax,
    description: 'An https URL with a public address, unless the operator allows others.',
  })
const eventType = oneOf(eventTypes, 'The type of an event.')
const types = () => arrayOf(eventType, 'The types of events that are delivered.')

export const newEndpoint = object(
  {
    name: name(),
    url: url(),
    event_types: types(),
    scope: optional(
      oneOf(
        scopes,
        '`user`: your own batches and responses, the default. `organization`: those of everyone.',
      ),
    ),
  },
  { $id: 'NewWebhookEndpoint' },
)

export const endpointChange = object(
  {
    name: optional(name()),
    url: optional(url()),
    event_types: optional(types()),
  },
  { $id: 'WebhookEndpointChange' },
)

export const rotation = object({
  keep_old_secret_active_for_24_hours: optional(
    boolean('Whether deliveries are signed with the replaced secret as well for 24 hours.'),
  ),
})

export const testRequest = object({ event_type: eventType })

const { readObject } = createReaders(invalid)

/** Each throws `invalid_request` with the invalid field as `param`. */
export function readNewEndpoint(body: unknown) {
  const fields = readObject(newEndpoint, body, '')
  return {
    name: readName(fields.name),
    url: fields.url,
    eventTypes: readTypes(fields.event_types),
    scope: fields.scope ?? 'user',
  }
}

export function readEndpointChange(body: unknown) {
  const { name, url, event_types: types } = readObject(endpointChange, body ?? {}, '')
  return {
    ...(name === undefined ? {} : { name: readName(name) }),
    ...(url === undefined ? {} : { url }),
    ...(types === undefined ? {} : { eventTypes: readTypes(types) }),
  }
}

export function readRotation(body: unknown): boolean {
  return readObject(rotation, body ?? {}, '').keep_old_secret_active_for_24_hours ?? false
}

export function readTest(body: unknown): EventType {
  return readObject(testRequest, body, '').event_type
}

function readName(text: string): string {
  // No database takes a NUL or a lone surrogate.
  if (text.isWellFormed() && !text.includes('\0')) return text
  throw invalid('name', 'must be well-formed text')
}

function readTypes(given: readonly unknown[]): readonly EventType[] {
  const known = new Set<unknown>(given)
  const read = eventTypes.filter((type) => known.has(type))
  if (read.length === known.size && read.length > 0) return read
  throw invalid('event_types', `must hold one or more of ${eventTypes.join(', ')}`)
}

/** `predicate` completes the sentence that begins with the field. */
function invalid(param: string, predicate: string): AppError {
  if (param === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${param} ${predicate}.`, { param })
}

const endpointFields = {
  id: Type.String(),
  object: Type.Literal('webhook_endpoint'),
  name: Type.String(),
  url: Type.String(),
  event_types: Type.Array(Type.String()),
  scope: Type.Union(scopes.map((scope) => Type.Literal(scope))),
  signing_secret_hint: nullable(Type.String(), 'The end of the secret.'),
  created_at: unixTime('Unix seconds.'),
  updated_at: unixTime('When its fields or its secret changed.'),
}

export const endpointObject = Type.Object(endpointFields, { $id: 'WebhookEndpoint' })

export const endpointWithSecret = Type.Object(
  {
    ...endpointFields,
    signing_secret: Type.String({ description: 'Shown once. It starts with `whsec_`.' }),
  },
  { $id: 'WebhookEndpointWithSecret' },
)

export const deliveryObject = Type.Object(
  {
    id: Type.String({ description: 'The header `webhook-id`, the same in every attempt.' }),
    object: Type.Literal('webhook_delivery'),
    event_id: Type.String(),
    event_type: Type.String(),
    status: Type.Union(
      (['pending', 'delivered', 'failed'] as const).map((status) => Type.Literal(status)),
    ),
    test: Type.Boolean({ description: 'Whether it is a test event, which is sent once.' }),
    attempts: Type.Integer(),
    attempt_log: Type.Array(
      Type.Object({
        at: Type.String({ format: 'date-time' }),
        status_code: nullable(Type.Integer(), 'Null: no response.'),
        error: nullable(Type.String(), 'Why there was no response.'),
        duration_ms: Type.Integer(),
      }),
      { description: 'The latest 20.' },
    ),
    created_at: unixTime('Unix seconds.'),
    next_attempt_at: nullable(Type.Integer(), 'Null for an ended delivery.'),
    ended_at: nullable(Type.Integer(), 'When it was delivered or given up.'),
  },
  { $id: 'WebhookDelivery' },
)

export function renderEndpoint(endpoint: WebhookEndpoint): Static<typeof endpointObject> {
  return {
    id: endpoint.id,
    object: 'webhook_endpoint',
    name: endpoint.name,
    url: endpoint.url,
    event_types: [...endpoint.eventTypes],
    scope: endpoint.scope,
    signing_secret_hint: endpoint.secretHint,
    created_at: unixSeconds(endpoint.createdAt),
    updated_at: unixSeconds(endpoint.updatedAt),
  }
}

export function renderDelivery(delivery: Delivery): Static<typeof deliveryObject> {
  const secondsOf = (date: Date | null) => (date === null ? null : unixSeconds(date))
  return {
    id: delivery.id,
    object: 'webhook_delivery',
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    status: delivery.status,
    test: delivery.isTest,
    attempts: delivery.attempts,
    attempt_log: [...delivery.attemptLog],
    created_at: unixSeconds(delivery.createdAt),
    next_attempt_at: secondsOf(delivery.nextAttemptAt),
    ended_at: secondsOf(delivery.endedAt),
  }
}
