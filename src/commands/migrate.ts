import { clock } from '#clock.ts'
import { readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import { openDatabase } from '#db/client.ts'
import { commandLine } from '#lib/own-program.ts'
import { createLog } from '#telemetry/log.ts'

const usage = `
Usage: ${commandLine('migrate')}

Brings the database to the schema of this version; a start does the same. With an embedded database
the gateway must be stopped.`

/** The command `migrate`. */
export async function migrate(args: readonly string[]): Promise<number> {
  if (readOptions(args, { usage, options: {} }) === null) return 0
  const config = loadConfigFromProcess([])
  const database = await openDatabase({
    databaseUrl: config.databaseUrl,
    dataFolder: config.data,
    connectionsMax: 1,
    log: createLog({ level: 'error', format: 'text', write: () => {}, now: clock.now }),
  })
  await database.close()
  process.stdout.write('The database has the schema of this version.\n')
  return 0
}
