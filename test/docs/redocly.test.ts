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
    const { problems } = asRecord(parseJson(await child.stdout.text()))
    const isKnown = (problem: unknown) => isRedirect(JSON.stringify(problem))
    expect((problems as unknown[]).filter((problem) => !isKnown(problem))).toEqual([])
    expect(await child.exited).toBe(0)
  } finally {
    await gateway.stop()
  }
})

/** Addresses that only lead a browser on have no response of status 2xx. */
function isRedirect(problem: string): boolean {
  return (
    problem.includes('"operation-2xx-response"') &&
    /"#\/paths\/~1(login|login~1callback|logout)\/get\/responses"/.test(problem)
  )
}
