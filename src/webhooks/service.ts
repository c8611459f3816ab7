import type { Principal } from '#auth/principal.ts'
import type { Transaction } from '#db/client.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { Page, PageRequest } from '#lib/page.ts'
import { actingPrincipal, type RequestContext } from '#lib/request-context.ts'
import { checkUrl } from '#outbound/check-url.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { type DeliverDeps, deliveryQueue, policyFor, sendOnce } from './deliver.ts'
import { type DeliveryStore, newDelivery, payloadOf } from './delivery-store.ts'
import { hintOf, newSecret } from './signature.ts'
import type { Manager, WebhookStore } from './store.ts'
import type {
  Attempt,
  Delivery,
  EndpointFields,
  EndpointScope,
  EventType,
  SealedEndpoint,
  WebhookEvent,
} from './webhooks.ts'

export type Webhooks = ReturnType<typeof createWebhooks>

type WebhooksDeps = Pick<DeliverDeps, 'config' | 'fetch' | 'resolve' | 'now'> & {
  store: WebhookStore
  deliveries: DeliveryStore
  sealer: Pick<Sealer, 'seal' | 'open'>
  jobs: Pick<Jobs, 'add'>
}

type Caller = RequestContext<Principal>
type WithSecret = { readonly endpoint: SealedEndpoint; readonly secret: string }

/** How long a replaced secret signs beside the new one, if the caller asks for it. */
const overlapMs = 86_400_000
/** Test events that this worker sends at the same time. */
const testsAtOnceMax = 8

/** Webhook endpoints of callers, and their deliveries. */
export function createWebhooks(deps: WebhooksDeps) {
  const { store, deliveries, sealer, config, now } = deps
  let testing = 0

  const addJob = (
    transaction: Transaction,
    { id, endpointId }: Pick<Delivery, 'id' | 'endpointId'>,
  ) => deps.jobs.add(transaction, { queue: deliveryQueue, key: id, lane: endpointId, payload: id })
  const lasting = () => ({ ageMaxS: config.webhooks.ageMaxS, addJob })

  async function find(caller: Caller, id: string): Promise<SealedEndpoint> {
    return (await store.find(managerOf(caller), id)) ?? notFound(id)
  }

  /** Throws for an address that no delivery would be sent to. */
  async function requireAllowed(text: string): Promise<void> {
    if (!URL.canParse(text)) throw invalidUrl('The URL is not valid.')
    const url = new URL(text)
    try {
      await checkUrl(url, policyFor(url, config), { what: 'The URL', resolve: deps.resolve })
    } catch (error) {
      throw error instanceof AppError ? invalidUrl(error.message) : error
    }
  }

  return {
    find,

    /** In the transaction of the event: it is delivered if and only if that commits. */
    announce: (transaction: Transaction, event: WebhookEvent): Promise<void> =>
      deliveries.announce(transaction, event, lasting()),

    /** Announces the ends of background responses. */
    async announceResponses(): Promise<void> {
      while (await deliveries.announceResponses(lasting()));
    },

    async create(
      caller: Caller,
      { scope, ...fields }: EndpointFields & { scope: EndpointScope },
    ): Promise<WithSecret> {
      const manager = managerOf(caller)
      if (scope === 'organization' && !manager.mayManageOrganization) {
        throw new AppError('permission_denied', organizationRight)
      }
      await requireAllowed(fields.url)
      const id = newId('whe_')
      const secret = newSecret()
      const createdAt = now()
      const endpoint: SealedEndpoint = {
        ...fields,
        id,
        scope,
        ownerId: caller.principal.userId,
        secret: sealer.seal('webhook', id, secret),
        secretHint: hintOf(secret),
        previousSecret: null,
        previousUntil: null,
        createdAt,
        updatedAt: createdAt,
      }
      const { perOwnerMax } = config.webhooks
      if (await store.insert(manager, endpoint, perOwnerMax)) return { endpoint, secret }
      const message = `There are ${perOwnerMax} endpoints, which is the limit; delete one first.`
      throw new AppError('invalid_request', message, { code: 'too_many_webhook_endpoints' })
    },

    async list(caller: Caller, page: PageRequest): Promise<Page<SealedEndpoint>> {
      return (await store.list(managerOf(caller), page)) ?? invalidCursor('endpoints')
    },

    async update(
      caller: Caller,
      id: string,
      change: Partial<EndpointFields>,
    ): Promise<SealedEndpoint> {
      await find(caller, id)
      if (change.url !== undefined) await requireAllowed(change.url)
      return (await store.update(managerOf(caller), id, change, now())) ?? notFound(id)
    },

    async remove(caller: Caller, id: string): Promise<void> {
      if (!(await store.remove(managerOf(caller), id, now()))) notFound(id)
    },

    async rotate(caller: Caller, id: string, keepsOld: boolean): Promise<WithSecret> {
      const current = await find(caller, id)
      const secret = newSecret()
      const change = {
        secret: sealer.seal('webhook', id, secret),
        secretHint: hintOf(secret),
        previousSecret: keepsOld ? current.secret : null,
        previousUntil: keepsOld ? new Date(now().getTime() + overlapMs) : null,
      }
      const endpoint = await store.update(managerOf(caller), id, change, now())
      return endpoint === undefined ? notFound(id) : { endpoint, secret }
    },

    /** Sends a sample event now, and returns the status of the receiver; throws if there is none. */
    async test(caller: Caller, id: string, type: EventType): Promise<number> {
      const endpoint = await find(caller, id)
      if (testing >= testsAtOnceMax) {
        throw new AppError('too_many_streams', 'Too many test events are being sent.', {
          retryAfterS: 1,
        })
      }
      testing++
      try {
        const eventId = newId('evt_')
        const at = now()
        const objectId = newId(type.startsWith('batch.') ? 'batch_' : 'resp_')
        const payload = payloadOf({ id: eventId, type, objectId, at })
        const { ageMaxS } = config.webhooks
        const delivery = newDelivery({ endpointId: id, eventId, type, payload, at, ageMaxS })
        await deliveries.insertTest(delivery)
        const { attempt, error } = await sendOnce(deps, endpoint, delivery, caller.signal)
        await recordTest(delivery, attempt)
        if (attempt.status_code === null) throw error ?? new Error('an attempt without outcome')
        return attempt.status_code
      } finally {
        testing--
      }
    },

    async listDeliveries(caller: Caller, id: string, page: PageRequest): Promise<Page<Delivery>> {
      await find(caller, id)
      return (await deliveries.list(id, page)) ?? invalidCursor('deliveries')
    },

    async retryDelivery(caller: Caller, id: string, deliveryId: string): Promise<Delivery> {
      await find(caller, id)
      const found = await deliveries.retry(id, deliveryId, { now: now(), ...lasting() })
      if (found !== undefined) return found
      throw new AppError('not_found', `There is no delivery with the id "${deliveryId}".`)
    },
  }

  async function recordTest(delivery: ReturnType<typeof newDelivery>, attempt: Attempt) {
    const { status_code: code } = attempt
    const isDelivered = code !== null && code >= 200 && code < 300
    const row = { ...delivery, isTest: true, attempts: 0, attemptLog: [], endedAt: null }
    const status = isDelivered ? ('delivered' as const) : ('failed' as const)
    await deliveries.record(row, attempt, { status, nextAttemptAt: null, now: now() })
  }
}

export const organizationRight =
  'An endpoint for the events of everyone requires the permission can_edit_config.'

function managerOf(caller: Caller): Manager {
  return {
    principal: actingPrincipal(caller),
    mayManageOrganization: caller.principal.permissions.has('can_edit_config'),
  }
}

export function endpointNotFound(id: string): AppError {
  return new AppError('not_found', `There is no webhook endpoint with the id "${id}".`, {
    param: 'id',
  })
}

function notFound(id: string): never {
  throw endpointNotFound(id)
}

function invalidCursor(what: string): never {
  const message = `after must be the id of one of the ${what} of this list.`
  throw new AppError('invalid_request', message, { param: 'after' })
}

/** The message says what is wrong with the URL, and nothing of our network. */
function invalidUrl(message: string): AppError {
  return new AppError('invalid_request', message, { param: 'url' })
}
