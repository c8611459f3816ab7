import { plugin } from 'bun'
import { useTemporaryFolders } from './temporary-folders.ts'
import { helperTimeoutMs, testTimeoutMs } from './time-limits.ts'

/** Runs before the first test file. Fast tests (`bun run test:fast`) have no database. */

// Bun has no setting for it, and `setDefaultTimeout` holds for one file.
plugin({
  name: 'test timeout',
  setup(build) {
    build.onLoad({ filter: /\.test\.ts$/ }, async ({ path }) => ({
      contents: `import { setDefaultTimeout as endHangingTests } from 'bun:test'; endHangingTests(${testTimeoutMs}); ${await Bun.file(path).text()}`,
      loader: 'ts',
    }))
  },
})
useTemporaryFolders()
if (process.env['SLUICE_TEST_FAST'] === undefined) {
  const { prepareDatabases } = await import('./database.ts')
  const { setRequestWait } = await import('#db/query-runner.ts')
  await prepareDatabases()
  // A busy machine is no database outage.
  setRequestWait(helperTimeoutMs)
}
