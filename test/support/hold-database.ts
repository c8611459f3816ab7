/** A program: opens the database of a data folder, adds a group, and keeps it open until killed. */
import { openDatabase } from '#db/client.ts'
import { setRequestWait } from '#db/query-runner.ts'
import { appGroup } from '#db/schema/auth.ts'
import { quietLog } from './quiet-log.ts'
import { helperTimeoutMs } from './time-limits.ts'

const dataFolder = Bun.argv[2] ?? ''
setRequestWait(helperTimeoutMs)
const database = await openDatabase({ dataFolder, connectionsMax: 1, log: quietLog })
await database.drizzle.insert(appGroup).values({ name: 'kept', permissions: [] })
// When the program has nothing more to do, and all that it holds by mistake has been collected.
setTimeout(() => {
  Bun.gc(true)
  process.stdout.write('committed\n')
})
