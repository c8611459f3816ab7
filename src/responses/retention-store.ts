import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { response, responseItem, responseLog, responseRunner } from '#db/schema/responses.ts'
import { type Handle, idRows, type StoreOptions } from './row-store.ts'

/** Responses that one statement deletes, with their items and logs. */
const responsesPerStatement = 200
/** A log may have thousands of segments. */
const logsPerTransaction = 50
/** The rest waits for the next sweep. */
const stepsMax = 500
const ownersPerSweep = 1_000
/** Runners without a heartbeat for this long, and without responses in progress, are deleted. */
const runnerAgeMaxS = 86_400

/** Deleted responses and logs after which the embedded database is vacuumed. */
const deletedPerVacuum = 1_000

/**
 * Deletes expired responses, logs and runners. Replicas may sweep at the same time: each skips the
 * rows that another one has locked.
 */
export function createSweep(
  { drizzle, kind }: Pick<Database, 'drizzle' | 'kind'>,
  { limits }: Pick<StoreOptions, 'limits'>,
): (now: Date) => Promise<void> {
  let deleted = 0
  return async (now) => {
    deleted += await deleteExpired(drizzle, now, limits.perOwnerMax)
    await deleteRunners(drizzle)
    // The embedded engine has no autovacuum.
    if (kind === 'postgres' || deleted < deletedPerVacuum) return
    await drizzle.execute(sql`vacuum (analyze) ${response}, ${responseItem}, ${responseLog}`)
    deleted = 0
  }
}

async function deleteExpired(
  drizzle: Database['drizzle'],
  now: Date,
  perOwnerMax: number,
): Promise<number> {
  const at = sql`${now.toISOString()}::timestamptz`
  let deleted = await deleteWhere(drizzle, sql`expires_at <= ${at} and status <> 'in_progress'`)
  for (const owner of await findOwnersOverLimit(drizzle, perOwnerMax)) {
    deleted += await deleteWhere(drizzle, isSurplus(owner, perOwnerMax))
  }
  return deleted + (await repeatUntilDone(logsPerTransaction, () => deleteLogs(drizzle, at)))
}

async function deleteRunners(drizzle: Handle): Promise<void> {
  await drizzle.execute(sql`
    delete from ${responseRunner} as runner
    where seen_at < clock_timestamp() - make_interval(secs => ${runnerAgeMaxS}::float8)
      and not exists (select 1 from ${response}
        where runner_id = runner.id and status = 'in_progress')`)
}

async function deleteWhere(drizzle: Handle, condition: SQL): Promise<number> {
  return repeatUntilDone(responsesPerStatement, async () => {
    const deleted = await drizzle.execute(sql`
      delete from ${response} where id in (
        select id from ${response} where ${condition}
        limit ${responsesPerStatement}::integer for update skip locked)
      returning 1`)
    return deleted.length
  })
}

async function findOwnersOverLimit(drizzle: Handle, responsesMax: number): Promise<string[]> {
  const rows = await drizzle.execute<{ owner: string }>(sql`
    select owner_id as owner from ${response}
    group by owner_id having count(*) > ${responsesMax}::bigint
    limit ${ownersPerSweep}::integer`)
  return rows.map(({ owner }) => owner)
}

/** Ended responses older than the newest `responsesMax` of the owner. */
function isSurplus(owner: string, responsesMax: number): SQL {
  return sql`owner_id = ${owner}::uuid and ended_at is not null and (created_at, id) <= (
    select created_at, id from ${response} where owner_id = ${owner}::uuid
    order by created_at desc, id desc offset ${responsesMax}::bigint limit 1)`
}

/** One log at a time: without statistics, a join over all of them becomes a table scan. */
async function deleteLogs(drizzle: Database['drizzle'], at: SQL): Promise<number> {
  return drizzle.transaction(async (transaction) => {
    const due = await transaction.execute<{ id: string }>(sql`
      select id from ${response} where log_expires_at <= ${at}
      limit ${logsPerTransaction}::integer for no key update skip locked`)
    for (const { id } of due) {
      await transaction.execute(sql`delete from ${responseLog} where response_id = ${id}`)
    }
    const ids = idRows(due.map(({ id }) => id))
    await transaction.execute(sql`update ${response} set log_expires_at = null where id in ${ids}`)
    return due.length
  })
}

/** Repeats a step until it processes fewer rows than its maximum; returns the total. */
async function repeatUntilDone(countPerStep: number, step: () => Promise<number>): Promise<number> {
  let total = 0
  for (let steps = 0; steps < stepsMax; steps++) {
    const count = await step()
    total += count
    if (count < countPerStep) break
  }
  return total
}
