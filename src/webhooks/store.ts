import { type SQL, sql } from 'drizzle-orm'
import { changedFields } from '#audit/audit.ts'
import { recordChange } from '#db/audit-entries.ts'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { webhookEndpoint } from '#db/schema/webhooks.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { EndpointFields, SealedEndpoint } from './webhooks.ts'

export type WebhookStore = ReturnType<typeof createWebhookStore>

/** Who manages endpoints: their own, and those of the organisation with the right to. */
export type Manager = {
  readonly principal: RequestPrincipal
  readonly mayManageOrganization: boolean
}

type Handle = Pick<Transaction, 'select'>

/**
 * Webhook endpoints. One that the principal may not manage does not exist for them. Every change is in
 * the audit log, without addresses and secrets.
 */
export function createWebhookStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const query = createQueryRunner()
  return {
    /** False: there are `countMax` endpoints of this owner or of the organisation. */
    insert: (manager: Manager, added: SealedEndpoint, countMax: number): Promise<boolean> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          const { ownerId, scope, createdAt } = added
          const group = scope === 'organization' ? scope : ownerId
          await transaction.execute(
            sql`select pg_advisory_xact_lock(hashtextextended(${`webhooks of ${group}`}, 0))`,
          )
          const isCounted =
            scope === 'organization'
              ? sql`scope = 'organization'`
              : sql`scope = 'user' and owner_id = ${ownerId}::uuid`
          if ((await transaction.$count(webhookEndpoint, isCounted)) >= countMax) return false
          await transaction.insert(webhookEndpoint).values(rowOf(added))
          await recordChange(transaction, manager.principal, {
            kind: 'webhook_endpoint',
            id: added.id,
            action: 'create',
            after: auditedFields(added),
            at: createdAt,
          })
          return true
        }),
      ),

    find: (manager: Manager, id: string): Promise<SealedEndpoint | undefined> =>
      query(() => findWhere(drizzle, sql`${isId(id)} and ${isManagedBy(manager)}`)),

    /** Of a delivery, which no principal asks for. */
    findById: (id: string): Promise<SealedEndpoint | undefined> => findWhere(drizzle, isId(id)),

    /** Newest first. Undefined: the cursor is no endpoint of the manager. */
    list: (manager: Manager, { limit, after }: PageRequest) =>
      query(async (): Promise<Page<SealedEndpoint> | undefined> => {
        const isManaged = isManagedBy(manager)
        const cursor = after === undefined ? null : sql`${isId(after)} and ${isManaged}`
        if (cursor !== null && (await findWhere(drizzle, cursor)) === undefined) return undefined
        const place = sql`(created_at, id)`
        const isAfter =
          cursor === null
            ? sql`true`
            : sql`${place} < (select created_at, id from ${webhookEndpoint} where ${cursor})`
        const rows = await drizzle
          .select()
          .from(webhookEndpoint)
          .where(sql`${isManaged} and ${isAfter}`)
          .orderBy(sql`created_at desc, id desc`)
          .limit(limit + 1)
        return pageOf(rows.map(endpointOf), limit)
      }),

    /** Undefined: there is no such endpoint. The same fields change nothing. */
    update: (
      manager: Manager,
      id: string,
      change: Partial<
        EndpointFields &
          Pick<SealedEndpoint, 'secret' | 'secretHint' | 'previousSecret' | 'previousUntil'>
      >,
      now: Date,
    ): Promise<SealedEndpoint | undefined> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          const condition = sql`${isId(id)} and ${isManagedBy(manager)}`
          const [row] = await transaction
            .select()
            .from(webhookEndpoint)
            .where(condition)
            .for('update')
          if (row === undefined) return undefined
          const before = endpointOf(row)
          const changed = { ...before, ...change }
          const changes = changedFields(auditedFields(before), auditedFields(changed))
          if (changes === null && changed.url === before.url) return before
          const after = { ...changed, updatedAt: now }
          await transaction.update(webhookEndpoint).set(rowOf(after)).where(condition)
          const isRotation = change.secret !== undefined
          await recordChange(transaction, manager.principal, {
            kind: 'webhook_endpoint',
            id,
            action: isRotation ? 'rotate_secret' : 'update',
            ...(changes ?? { before: { url: 'changed' }, after: { url: 'changed' } }),
            at: now,
          })
          return after
        }),
      ),

    /** Deletes an endpoint with its deliveries; false: there is none. */
    remove: (manager: Manager, id: string, now: Date): Promise<boolean> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          const removed = await transaction
            .delete(webhookEndpoint)
            .where(sql`${isId(id)} and ${isManagedBy(manager)}`)
            .returning()
          const [row] = removed
          if (row === undefined) return false
          await recordChange(transaction, manager.principal, {
            kind: 'webhook_endpoint',
            id,
            action: 'delete',
            before: auditedFields(endpointOf(row)),
            at: now,
          })
          return true
        }),
      ),
  }
}

async function findWhere(handle: Handle, condition: SQL): Promise<SealedEndpoint | undefined> {
  const [row] = await handle.select().from(webhookEndpoint).where(condition)
  return row === undefined ? undefined : endpointOf(row)
}

/** No id has a NUL, which the database refuses. */
function isId(id: string): SQL {
  return sql`${webhookEndpoint.id} = ${id.replaceAll('\0', '')}`
}

function isManagedBy({ principal, mayManageOrganization }: Manager): SQL {
  const isOwn = sql`(scope = 'user' and owner_id = ${principal.userId}::uuid)`
  return mayManageOrganization ? sql`(${isOwn} or scope = 'organization')` : isOwn
}

/** An address may hold a credential. */
function auditedFields({ name, url, eventTypes, scope, secretHint }: SealedEndpoint): JsonObject {
  return { name, host: new URL(url).host, event_types: eventTypes, scope, secret: secretHint }
}

type Row = typeof webhookEndpoint.$inferSelect

function rowOf({ eventTypes, ...endpoint }: SealedEndpoint): Row {
  return { ...endpoint, eventTypes: JSON.stringify(eventTypes) }
}

function endpointOf({ eventTypes, ...row }: Row): SealedEndpoint {
  return { ...row, eventTypes: JSON.parse(eventTypes) }
}
