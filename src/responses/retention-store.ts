import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { response, responseItem, responseLog, responseRunner } from '#db/schema/responses.ts'
import { type Handle, idRows, type StoreOptions } from './row-store.ts'

/** One statement deletes so many responses, with all that is theirs. */
const responsesPerStatement = 200
/** A log may have thousands of segments. */
const logsPerTransaction = 50
/** What is left after so many steps of a kind waits for the next sweep. */
const stepsMax = 500
const ownersPerSweep = 1_000
/** A runner that was silent for so long, and has nothing to run, is forgotten. */
const runnerAgeMaxS = 86_400

/** The embedded database is tidied when so many responses and logs were deleted. */
const deletedPerVacuum = 1_000

/**
 * Deletes what is past its time. Several replicas may sweep at once: what one of them holds, the
 * others pass over, and nobody waits.
 */
export function createSweep(
  { drizzle, kind }: Pick<Database, 'drizzle' | 'kind'>,
  { limits }: Pick<StoreOptions, 'limits'>,
): (now: Date) => Promise<void> {
  let deleted = 0
  return async (now) => {
    deleted += await deleteOld(drizzle, now, limits.perOwnerMax)
    await forgetRunners(drizzle)
    // A server gives the room of what is deleted to new rows by itself; the embedded one never does.
    if (kind === 'postgres' || deleted < deletedPerVacuum) return
    await drizzle.execute(sql`vacuum (analyze) ${response}, ${responseItem}, ${responseLog}`)
    deleted = 0
  }
}

async function deleteOld(
  drizzle: Database['drizzle'],
  now: Date,
  perOwnerMax: number,
): Promise<number> {
  const at = sql`${now.toISOString()}::timestamptz`
  let deleted = await deleteWhere(drizzle, sql`expires_at <= ${at} and status <> 'in_progress'`)
  for (const owner of await findOwnersOverLimit(drizzle, perOwnerMax)) {
    deleted += await deleteWhere(drizzle, isSurplus(owner, perOwnerMax))
  }
  return deleted + (await repeat(logsPerTransaction, () => dropLogs(drizzle, at)))
}

async function forgetRunners(drizzle: Handle): Promise<void> {
  await drizzle.execute(sql`
    delete from ${responseRunner} as runner
    where seen_at < clock_timestamp() - make_interval(secs => ${runnerAgeMaxS}::float8)
      and not exists (select 1 from ${response}
        where runner_id = runner.id and status = 'in_progress')`)
}

async function deleteWhere(drizzle: Handle, condition: SQL): Promise<number> {
  return repeat(responsesPerStatement, async () => {
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

/** As old as the newest that is one too many. What still runs or waits stays, however old it is. */
function isSurplus(owner: string, responsesMax: number): SQL {
  return sql`owner_id = ${owner}::uuid and ended_at is not null and (created_at, id) <= (
    select created_at, id from ${response} where owner_id = ${owner}::uuid
    order by created_at desc, id desc offset ${responsesMax}::bigint limit 1)`
}

/** One log at a time: of all of them at once, a database without statistics makes a scan. */
async function dropLogs(drizzle: Database['drizzle'], at: SQL): Promise<number> {
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

/** Until a step finds less than it may take; answers with how many there were. */
async function repeat(countPerStep: number, step: () => Promise<number>): Promise<number> {
  let total = 0
  for (let steps = 0; steps < stepsMax; steps++) {
    const count = await step()
    total += count
    if (count < countPerStep) break
  }
  return total
}
