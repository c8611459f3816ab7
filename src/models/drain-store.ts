import { eq } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { drainedUpstream } from '#db/schema/upstreams.ts'

export type DrainDatabase = Pick<Database, 'drizzle' | 'listen' | 'notifyOnCommit'>

/** An upstream that is out of service. */
export type Drain = typeof drainedUpstream.$inferSelect

const channel = 'drained_upstreams'

/** Changes write their audit entry with `record`, in the same transaction. */
export function createDrainStore(database: DrainDatabase) {
  const { drizzle } = database
  const query = createQueryRunner()
  type RecordAudit = (transaction: Transaction) => Promise<void>
  const change = (
    make: (transaction: Transaction) => Promise<readonly unknown[]>,
    record: RecordAudit,
  ): Promise<void> =>
    query(() =>
      drizzle.transaction(async (transaction) => {
        const changed = await make(transaction)
        if (changed.length === 0) return
        await record(transaction)
        await database.notifyOnCommit(transaction, channel, '')
      }),
    )
  return {
    /** Calls back when any process may have made a change. */
    follow: (onChange: () => void): Promise<void> =>
      database.listen(channel, { onMessage: onChange, onGap: onChange }),

    /** Has no timeout. */
    list: (): Promise<Drain[]> => drizzle.select().from(drainedUpstream),

    /** Does nothing if it is drained already. */
    add: (drain: Drain, record: RecordAudit): Promise<void> =>
      change(
        (transaction) =>
          transaction.insert(drainedUpstream).values(drain).onConflictDoNothing().returning(),
        record,
      ),

    /** Does nothing if it is not drained. */
    remove: (name: string, record: RecordAudit): Promise<void> =>
      change(
        (transaction) =>
          transaction.delete(drainedUpstream).where(eq(drainedUpstream.name, name)).returning(),
        record,
      ),
  }
}
