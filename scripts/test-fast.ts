/** `bun run test:fast`: the tests that need no gateway, database or child process. */
import { listFastTests } from '#test/support/fast-tests.ts'

const files = listFastTests()
const startedMs = performance.now()
const run = Bun.spawn(
  [process.execPath, 'test', '--parallel=2', '--no-isolate', ...files.map((file) => `./${file}`)],
  { env: { ...process.env, SLUICE_TEST_FAST: '1' }, stdio: ['inherit', 'inherit', 'inherit'] },
)
const exitCode = await run.exited
const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
console.log(`${files.length} test files in ${seconds} s`)
process.exit(exitCode)
