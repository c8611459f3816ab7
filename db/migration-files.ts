import { join } from 'node:path'
import { readMigrationFiles } from 'drizzle-orm/migrator'

/** The migrations of this version. A build replaces this module by its result. */
export const migrations = readMigrationFiles({
  migrationsFolder: join(import.meta.dir, 'migrations'),
})
