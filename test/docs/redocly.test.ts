import { expect, test } from 'bun:test'
import { asRecord, parseJson } from '#lib/json.ts'
import { startGateway } from '#test/support/gateway.ts'

const redocly = Bun.which('redocly')
if (redocly === null) console.warn('skipped: redocly is not on the PATH; see .ci/api-tools')

test.skipIf(redocly === null)('Redocly has no error and no warning', async () => {
  const gateway = await startGateway()
  try {
    const child = Bun.spawn(
      [redocly ?? '', 'lint', `${gateway.url}/openapi.json`, '--format', 'json'],
      { stdout: 'pipe', stderr: 'ignore', env: { ...process.env, REDOCLY_TELEMETRY: 'off' } },
    )
    const { totals, problems } = asRecord(parseJson(await child.stdout.text()))
    expect(problems).toEqual([])
    expect(totals).toMatchObject({ errors: 0, warnings: 0 })
    expect(await child.exited).toBe(0)
  } finally {
    await gateway.stop()
  }
})
