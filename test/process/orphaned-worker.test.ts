import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createTestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { inheritedEnvironment, jwtSecret, temporaryFolder } from '#test/support/process.ts'

const main = join(import.meta.dir, '../../src/main.ts')
const file = { path: 'sluice.toml', text: '', fault: null }
const config = { type: 'config', files: { started: file, accepted: file } }

/** The test is the supervisor, and is gone before the worker runs its first line. */
test.each([
  ['before it sends the configuration', [], 'The supervisor has exited.'],
  ['after it has sent the configuration', [config], ''],
])(
  'a worker whose supervisor dies at once, %s, ends without listening',
  async (_, messages, error) => {
    const place = await createTestPlace()
    const worker = Bun.spawn([process.execPath, main, 'worker', 'first', '0'], {
      cwd: temporaryFolder(),
      env: {
        ...inheritedEnvironment(),
        PORT: '0',
        JWT_SECRET: jwtSecret,
        SLUICE_DATA: place.dataFolder,
        ...(place.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      ipc() {},
    })
    try {
      const output = Promise.all(
        [worker.stdout, worker.stderr].map((each) => new Response(each).text()),
      )
      for (const message of messages) worker.send(message)
      worker.disconnect()
      await eventually('the worker ends', () => worker.exitCode !== null)
      const [log, errors] = await output
      expect(log).not.toContain('"message":"listening"')
      expect(errors).toContain(error)
    } finally {
      worker.kill('SIGKILL')
      await worker.exited
      await place.remove()
    }
  },
)
