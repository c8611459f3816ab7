import { setDefaultTimeout } from 'bun:test'
import { prepareDatabases } from './database.ts'

/** Runs before the first test file. A busy machine may be slow; only a test that hangs may fail. */
setDefaultTimeout(60_000)
await prepareDatabases()
