import { prepareDatabases } from './database.ts'

/** Runs before the first test file. */
await prepareDatabases()
