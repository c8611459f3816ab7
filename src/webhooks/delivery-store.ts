import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { response } from '#db/schema/responses.ts'
import { webhookDelivery, webhookEndpoint } from '#db/schema/webhooks.ts'
import { newId } from '#lib/id.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Attempt, Delivery, EventType, WebhookEvent } from './webhooks.ts'

export type DeliveryStore = ReturnType<typeof createDeliveryStore>

type AddJob = (
  transaction: Transaction,
  delivery: Pick<Delivery, 'id' | 'endpointId'>,
) => Promise<void>

/** Responses whose end one transaction announces. */
const responsesPerScan = 100
const sweptPerStatement = 500
/** Older attempts of a delivery are counted only. */
const attemptsLoggedMax = 20

/** Events for endpoints, and the attempts to deliver them. */
export function createDeliveryStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const query = createQueryRunner()

  /** Adds a delivery of an event to each endpoint that wants it, in the transaction of the event. */
  async function announce(
    transaction: Transaction,
    { type, ownerId, objectId, at }: WebhookEvent,
    { ageMaxS, addJob }: { ageMaxS: number; addJob: AddJob },
  ): Promise<void> {
    const endpoints = await transaction.execute<{ id: string }>(sql`
      select id from ${webhookEndpoint}
      where (scope = 'organization' or owner_id = ${ownerId}::uuid)
        and position(${JSON.stringify(type)} in event_types) > 0`)
    if (endpoints.length === 0) return
    const eventId = newId('evt_')
    const payload = payloadOf({ id: eventId, type, objectId, at })
    for (const { id: endpointId } of endpoints) {
      const delivery = newDelivery({ endpointId, eventId, type, payload, at, ageMaxS })
      await transaction.insert(webhookDelivery).values(delivery)
      await addJob(transaction, delivery)
    }
  }

  return {
    announce,

    /**
     * Announces the ends of background responses that nobody has announced; returns whether there may
     * be more. Their writers need not know of webhooks.
     */
    async announceResponses(given: { ageMaxS: number; addJob: AddJob }): Promise<boolean> {
      const isDue = sql`webhook_due and status in ('completed', 'failed', 'cancelled', 'incomplete')`
      const [due] = await drizzle.execute(sql`select 1 from ${response} where ${isDue} limit 1`)
      if (due === undefined) return false
      return drizzle.transaction(async (transaction) => {
        const ended = await transaction.execute<{
          id: string
          ownerId: string
          status: string
          endedAtMs: number
        }>(sql`
          update ${response} set webhook_due = false where id in (
            select id from ${response} where ${isDue}
            limit ${responsesPerScan}::integer for no key update skip locked)
          returning id, owner_id as "ownerId", status, 
            (extract(epoch from ended_at) * 1000)::float8 as "endedAtMs"`)
        for (const { id: objectId, ownerId, status, endedAtMs } of ended) {
          const type = `response.${status}` as EventType
          await announce(transaction, { type, ownerId, objectId, at: new Date(endedAtMs) }, given)
        }
        return ended.length === responsesPerScan
      })
    },

    find: (id: string): Promise<Delivery | undefined> =>
      findWhere(drizzle, sql`${webhookDelivery.id} = ${id}`),

    insertTest: (delivery: ReturnType<typeof newDelivery>): Promise<void> =>
      query(async () => {
        await drizzle.insert(webhookDelivery).values({ ...delivery, isTest: true })
      }),

    /** Newest first. Undefined: the cursor is no delivery of the endpoint. */
    list: (endpointId: string, { limit, after }: PageRequest) =>
      query(async (): Promise<Page<Delivery> | undefined> => {
        const isOf = sql`endpoint_id = ${endpointId}`
        const cursor =
          after === undefined ? null : sql`id = ${after.replaceAll('\0', '')} and ${isOf}`
        if (cursor !== null && (await findWhere(drizzle, cursor)) === undefined) return undefined
        const place = sql`(created_at, id)`
        const isAfter =
          cursor === null
            ? sql`true`
            : sql`${place} < (select created_at, id from ${webhookDelivery} where ${cursor})`
        const rows = await drizzle
          .select()
          .from(webhookDelivery)
          .where(sql`${isOf} and ${isAfter}`)
          .orderBy(sql`created_at desc, id desc`)
          .limit(limit + 1)
        return pageOf(rows.map(deliveryOf), limit)
      }),

    /** Makes an ended delivery due again; undefined: there is none. */
    retry: (
      endpointId: string,
      id: string,
      given: { now: Date; ageMaxS: number; addJob: AddJob },
    ): Promise<Delivery | undefined> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          const giveUpAt = new Date(given.now.getTime() + given.ageMaxS * 1_000)
          const isAsked = sql`id = ${id.replaceAll('\0', '')} and endpoint_id = ${endpointId}
            and not is_test`
          await transaction.execute(sql`
            update ${webhookDelivery} set status = 'pending', ended_at = null,
              give_up_at = ${at(giveUpAt)}, next_attempt_at = ${at(given.now)}
            where ${isAsked} and status <> 'pending'`)
          const delivery = await findWhere(transaction, isAsked)
          if (delivery !== undefined) await given.addJob(transaction, delivery)
          return delivery
        }),
      ),

    /** Records an attempt and what follows from it. */
    async record(
      { id, attempts, attemptLog }: Delivery,
      attempt: Attempt | null,
      outcome: { status: Delivery['status']; nextAttemptAt: Date | null; now: Date },
    ): Promise<void> {
      const log = attempt === null ? attemptLog : [...attemptLog, attempt]
      const endedAt = outcome.status === 'pending' ? null : outcome.now
      await drizzle.execute(sql`
        update ${webhookDelivery} set status = ${outcome.status},
          attempts = ${attempts + (attempt === null ? 0 : 1)}::integer,
          attempt_log = ${JSON.stringify(log.slice(-attemptsLoggedMax))},
          next_attempt_at = ${at(outcome.nextAttemptAt)}, ended_at = ${at(endedAt)}
        where id = ${id}`)
    },

    /** Deletes deliveries that ended before; returns whether there may be more. */
    async dropEnded(endedTo: Date): Promise<boolean> {
      const dropped = await drizzle.execute(sql`
        delete from ${webhookDelivery} where id in (
          select id from ${webhookDelivery} where ended_at <= ${at(endedTo)}
          limit ${sweptPerStatement}::integer for update skip locked)
        returning 1`)
      return dropped.length === sweptPerStatement
    },
  }
}

type EventBody = Pick<WebhookEvent, 'type' | 'objectId' | 'at'> & { readonly id: string }

/** The body of a delivery. It has no content of requests: the receiver fetches that with its key. */
export function payloadOf({ id, type, objectId, at: createdAt }: EventBody): string {
  return JSON.stringify({
    id,
    object: 'event',
    type,
    created_at: unixSeconds(createdAt),
    data: { id: objectId },
  })
}

export function newDelivery(given: {
  endpointId: string
  eventId: string
  type: EventType
  payload: string
  at: Date
  ageMaxS: number
}) {
  const { endpointId, eventId, type: eventType, payload, at: createdAt, ageMaxS } = given
  return {
    id: newId('wh_'),
    endpointId,
    eventId,
    eventType,
    payload,
    status: 'pending' as const,
    createdAt,
    giveUpAt: new Date(createdAt.getTime() + ageMaxS * 1_000),
    nextAttemptAt: createdAt,
  }
}

async function findWhere(
  handle: Pick<Transaction, 'select'>,
  condition: SQL,
): Promise<Delivery | undefined> {
  const [row] = await handle.select().from(webhookDelivery).where(condition)
  return row === undefined ? undefined : deliveryOf(row)
}

function deliveryOf({ attemptLog, ...row }: typeof webhookDelivery.$inferSelect): Delivery {
  return { ...row, attemptLog: JSON.parse(attemptLog) }
}

function at(time: Date | null): SQL {
  return sql`${time?.toISOString() ?? null}::timestamptz`
}
