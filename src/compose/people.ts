import { createAudit } from '#audit/audit.ts'
import { startAuditSweep } from '#audit/sweep.ts'
import { createAuth } from '#auth/auth.ts'
import { countRefusals } from '#auth/count-refusals.ts'
import { createDirectory } from '#directory/directory.ts'
import type { World } from './world.ts'

/** Who is calling, who there is, and what was done to them. */
export async function composePeople(world: World) {
  const { config, database, log, clock, fetch, metrics } = world
  const { now } = clock
  const audit = createAudit({ database, now })
  const auth = countRefusals(
    await createAuth({ config, database, audit, log, clock, fetch }),
    metrics.callerRefused,
  )
  const sweep = startAuditSweep({ database, settings: config.audit, log, now })
  return {
    audit,
    auth,
    directory: createDirectory({ database, auth, audit, config, now }),
    async close() {
      await sweep.stop()
      await auth.close()
    },
  }
}
