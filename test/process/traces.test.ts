import { afterEach, expect, test } from 'bun:test'
import { startOtlpReceiver } from '#test/support/otlp-receiver.ts'
import { startGatewayProcess, stopProcesses } from '#test/support/process.ts'

afterEach(stopProcesses)

const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`

test.skipIf(process.env['DATABASE_URL'] === undefined)(
  'two workers export the spans of their requests, and a job of either keeps its trace',
  async () => {
    const receiver = startOtlpReceiver()
    const gateway = await startGatewayProcess({
      environment: { ...receiver.environment, SLUICE_WORKERS: '2' },
    })
    await gateway.logged('listening', 2)
    const requests = 8
    for (let at = 0; at < requests; at++) {
      const response = await gateway.request('/v1/responses', {
        method: 'POST',
        // A connection of its own may reach the other worker.
        headers: { traceparent, connection: 'close' },
        body: JSON.stringify({ model: 'demo-fast', input: 'Hi.', background: true }),
      })
      expect(response.status).toBe(200)
    }
    const named = (name: string) => receiver.spans.filter((span) => span.name === name)
    await receiver.named('job response')
    gateway.signal('SIGTERM')
    expect(await gateway.exited).toBe(0)
    expect(new Set(receiver.spans.map((span) => span.traceId))).toEqual(new Set([traceId]))
    const parents = new Set(named('POST /v1/responses').map(({ spanId }) => spanId))
    expect(parents.size).toBe(requests)
    const jobs = named('job response')
    expect(jobs.length).toBeGreaterThan(0)
    expect(jobs.filter(({ parentSpanId }) => !parents.has(parentSpanId))).toEqual([])
    await receiver.stop()
  },
)
