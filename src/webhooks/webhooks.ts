/** URLs that receive an event when background work ends. The types follow OpenAI's packages. */

export const eventTypes = [
  'batch.completed',
  'batch.failed',
  'batch.expired',
  'batch.cancelled',
  'response.completed',
  'response.failed',
  'response.cancelled',
  'response.incomplete',
] as const
export type EventType = (typeof eventTypes)[number]

/** Whose events an endpoint gets: those of its owner, or of everyone. */
export const scopes = ['user', 'organization'] as const
export type EndpointScope = (typeof scopes)[number]

export type EndpointFields = {
  readonly name: string
  readonly url: string
  readonly eventTypes: readonly EventType[]
}

export type WebhookEndpoint = EndpointFields & {
  readonly id: string
  readonly ownerId: string
  readonly scope: EndpointScope
  readonly secretHint: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** With its encrypted secrets. */
export type SealedEndpoint = WebhookEndpoint & {
  readonly secret: string
  readonly previousSecret: string | null
  readonly previousUntil: Date | null
}

/** The end of one batch or response. */
export type WebhookEvent = {
  readonly type: EventType
  readonly ownerId: string
  readonly objectId: string
  readonly at: Date
}

export type Attempt = {
  readonly at: string
  /** Null: no response. */
  readonly status_code: number | null
  readonly error: string | null
  readonly duration_ms: number
}

export type Delivery = {
  readonly id: string
  readonly endpointId: string
  readonly eventId: string
  readonly eventType: string
  readonly payload: string
  readonly status: 'pending' | 'delivered' | 'failed'
  readonly isTest: boolean
  readonly attempts: number
  readonly attemptLog: readonly Attempt[]
  readonly createdAt: Date
  readonly giveUpAt: Date
  readonly nextAttemptAt: Date | null
  readonly endedAt: Date | null
}
