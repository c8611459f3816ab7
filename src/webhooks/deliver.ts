import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import type { Jobs, RunningJob } from '#jobs/jobs.ts'
import { AppError, type ErrorKind, toAppError } from '#lib/errors.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import { matchesHost, type UrlPolicy } from '#outbound/check-url.ts'
import { createCheckedFetch, type Fetch } from '#outbound/checked-fetch.ts'
import type { Resolve } from '#outbound/resolve.ts'
import type { Sealer } from '#sealing/sealer.ts'
import type { DeliveryStore } from './delivery-store.ts'
import { signedHeaders } from './signature.ts'
import type { WebhookStore } from './store.ts'
import type { Attempt, Delivery, SealedEndpoint } from './webhooks.ts'

export type DeliverDeps = {
  store: Pick<WebhookStore, 'findById'>
  deliveries: Pick<DeliveryStore, 'find' | 'record'>
  auth: Pick<Auth, 'currentPrincipal'>
  sealer: Pick<Sealer, 'open'>
  config: Pick<Config, 'webhooks'>
  fetch: Fetch
  resolve: Resolve
  onAttempted: (outcome: 'delivered' | 'refused' | 'failed') => void
  now: () => Date
}

export const deliveryQueue = 'webhook'
const deliveriesAtOnceMax = 16
/** Of these, to one endpoint: a slow one does not delay the others. */
const perEndpointMax = 4
/** A delivery ends by its age long before; attempts count lost workers. */
const attemptsMax = 1_000_000
/** The body of a response is cancelled unread, however long it is. */
const responseBytesMax = Number.POSITIVE_INFINITY
const pauseMinS = 5
const pauseGrowth = 3
const pauseMaxS = 3_600
const errorCharsMax = 300
/** The endpoint does not want this event, now or later. */
const goneStatus = 410

/** Rules for an address of a user. */
export function policyFor(url: URL, { webhooks }: Pick<Config, 'webhooks'>): UrlPolicy {
  return matchesHost(url.hostname, webhooks.privateHosts)
    ? { hosts: webhooks.privateHosts, portsAllowed: [], private: true }
    : { hosts: webhooks.hosts, portsAllowed: webhooks.ports, private: false }
}

type Sent = {
  readonly attempt: Attempt
  readonly retryAfterS: number
  readonly error: AppError | null
}

/** Sends a delivery once. Failures are a part of the result. */
export async function sendOnce(
  deps: Pick<DeliverDeps, 'sealer' | 'config' | 'fetch' | 'resolve' | 'now'>,
  endpoint: SealedEndpoint,
  { id, payload }: Pick<Delivery, 'id' | 'payload'>,
  signal: AbortSignal,
): Promise<Sent> {
  const at = deps.now()
  const beganAtMs = performance.now()
  const ended = (statusCode: number | null, error: AppError | null, retryAfterS = 0): Sent => ({
    attempt: {
      at: at.toISOString(),
      status_code: statusCode,
      error: error === null ? null : error.message.slice(0, errorCharsMax),
      duration_ms: Math.round(performance.now() - beganAtMs),
    },
    retryAfterS,
    error,
  })
  try {
    const url = new URL(endpoint.url)
    const checkedFetch = createCheckedFetch(
      {
        ...policyFor(url, deps.config),
        timeoutMs: deps.config.webhooks.attemptMs,
        bodyBytesMax: responseBytesMax,
      },
      deps,
    )
    const signed = { id, timestampS: unixSeconds(at), body: payload }
    const response = await checkedFetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'sluice-webhooks',
        ...signedHeaders(signed, secretsOf(deps.sealer, endpoint, at)),
      },
      body: payload,
      signal,
    })
    await response.body?.cancel()
    const retryAfterS = Number(response.headers.get('retry-after') ?? 0)
    return ended(response.status, null, Number.isFinite(retryAfterS) ? retryAfterS : 0)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    return ended(null, toAppError(error))
  }
}

/** Processes deliveries in this worker: each attempt runs on one worker of all replicas. */
export function processDeliveries(deps: DeliverDeps, jobs: Pick<Jobs, 'process'>) {
  return jobs.process(deliveryQueue, {
    concurrencyMax: deliveriesAtOnceMax,
    laneJobsMax: perEndpointMax,
    attemptsMax,
    run: (job) => deliver(deps, job),
    onFailed: async () => {},
  })
}

async function deliver(deps: DeliverDeps, { payload, signal }: RunningJob): Promise<void> {
  const delivery = await deps.deliveries.find(String(payload))
  // It was deleted with its endpoint, or an earlier attempt has ended it.
  if (delivery?.status !== 'pending') return
  const endpoint = await deps.store.findById(delivery.endpointId)
  if (endpoint === undefined) return
  const end = (status: 'delivered' | 'failed', attempt: Attempt | null) =>
    deps.deliveries.record(delivery, attempt, { status, nextAttemptAt: null, now: deps.now() })
  if (deps.now() >= delivery.giveUpAt || !(await isWanted(deps, endpoint))) {
    return end('failed', null)
  }
  const { attempt, retryAfterS, error } = await sendOnce(deps, endpoint, delivery, signal)
  const { status_code: status } = attempt
  if (status !== null && status >= 200 && status < 300) {
    deps.onAttempted('delivered')
    return end('delivered', attempt)
  }
  deps.onAttempted(status === null ? 'failed' : 'refused')
  const pauseS = Math.max(pauseAfter(delivery.attempts + 1), Math.min(retryAfterS, pauseMaxS))
  const nextAttemptAt = new Date(deps.now().getTime() + pauseS * 1_000)
  if (status === goneStatus || nextAttemptAt > delivery.giveUpAt) return end('failed', attempt)
  const outcome = { status: 'pending', nextAttemptAt, now: deps.now() } as const
  await deps.deliveries.record(delivery, attempt, outcome)
  throw new AppError(
    'upstream_error',
    error?.message ?? `The receiver returned status ${status}.`,
    {
      retryAfterS: pauseS,
    },
  )
}

/** Seconds after so many attempts. */
function pauseAfter(attempts: number): number {
  return Math.min(pauseMaxS, pauseMinS * pauseGrowth ** (attempts - 1))
}

const refusals: ReadonlySet<ErrorKind> = new Set(['invalid_token', 'permission_denied'])

/** False for a user who was disabled since. */
async function isWanted(
  { auth }: Pick<DeliverDeps, 'auth'>,
  { ownerId: userId, scope }: SealedEndpoint,
): Promise<boolean> {
  if (scope === 'organization') return true
  try {
    await auth.currentPrincipal({ userId, keyId: null })
    return true
  } catch (error) {
    if (refusals.has(toAppError(error).kind)) return false
    throw error
  }
}

function secretsOf(
  sealer: Pick<Sealer, 'open'>,
  { id, secret, previousSecret, previousUntil }: SealedEndpoint,
  now: Date,
): readonly string[] {
  const isPreviousValid = previousUntil !== null && previousUntil > now
  const sealed = [secret, ...(previousSecret !== null && isPreviousValid ? [previousSecret] : [])]
  return sealed.map((text) => {
    const opened = sealer.open('webhook', id, text)
    if (opened === null) throw new AppError('invalid_encrypted_content', 'The secret is lost.')
    return opened
  })
}
