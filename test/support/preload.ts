export {}

/** Runs before the first test file. Fast tests (`bun run test:fast`) have no database. */
if (process.env['SLUICE_TEST_FAST'] === undefined) {
  const { prepareDatabases } = await import('./database.ts')
  await prepareDatabases()
}
