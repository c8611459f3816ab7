import { Value } from '@sinclair/typebox/value'
import { buildApp } from './app.ts'
import type { Principal } from './auth/principal.ts'
import { createHttpMetrics } from './http/metrics.ts'
import { asRecord } from './lib/json.ts'
import { systemPrincipal } from './lib/request-context.ts'
import { startCallPath } from './models/call-path.ts'
import { upstreamEntry } from './models/upstream-config.ts'
import type { Services } from './modules.ts'
import type { Log } from './telemetry/log.ts'
import { createMetricRegistry } from './telemetry/metrics.ts'

/** Enough to load and compile everything once; more would optimise the code for this instance. */
const roundsMax = 20
const model = 'warm-up'

/**
 * Serves common requests to a second instance of the application before the first client connects, so
 * that the code of the request path is loaded and compiled. Without it the first request takes 20 ms
 * longer. The instance has its own upstream, models and metrics, so it leaves no trace. Returns how many
 * requests succeeded within `limitMs`.
 */
export async function warmUp(services: Services, limitMs: number): Promise<number> {
  const endsAtMs = performance.now() + limitMs
  const upstream = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: respond })
  const callPath = startUpstreamCalls(services, `http://127.0.0.1:${upstream.port}/v1`)
  try {
    const { auth } = services
    const app = buildApp({
      ...services,
      ...callPath.services,
      log: silentLog,
      httpMetrics: createHttpMetrics(createMetricRegistry({ seriesMax: 100 })),
      auth: { ...auth, authenticate: () => principal },
    })
    let succeeded = 0
    for (let round = 0; round < roundsMax && performance.now() < endsAtMs; round++) {
      for (const request of requests()) {
        const response = await app.handle(request)
        await response.arrayBuffer()
        if (response.ok) succeeded++
      }
    }
    return succeeded
  } finally {
    await callPath.close()
    await upstream.stop(true)
  }
}

/** The path of calls to the only upstream, whose model no access rule hides. */
function startUpstreamCalls({ config, ...services }: Services, url: string) {
  const upstream = Value.Parse(upstreamEntry, { name: model, api: 'chat', url, models: [model] })
  return startCallPath({
    ...services,
    config: {
      ...config,
      upstream: [upstream],
      model: [],
      transport: 'socket',
      llama: { ...config.llama, enabled: false },
      onnx: { ...config.onnx, enabled: false },
    },
    accessRules: () => [],
    admit: services.limits.admit,
    usageLedger: null,
    log: silentLog,
    metrics: createMetricRegistry({ seriesMax: 100 }),
  })
}

/** One request of each common kind. */
function requests(): Request[] {
  const input = 'hello'
  return [
    requestOf('/v1/responses', { input, store: false }),
    requestOf('/v1/responses', { input, store: false, stream: true }),
    requestOf('/compat/v1/messages', {
      messages: [{ role: 'user', content: input }],
      max_tokens: 100,
      stream: true,
    }),
  ]
}

function requestOf(path: string, body: object): Request {
  return new Request(`http://127.0.0.1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': model },
    body: JSON.stringify({ model, ...body }),
  })
}

/** Like the work of the gateway itself, it belongs to nobody: no limit or budget applies. */
const principal: Principal = {
  userId: systemPrincipal.userId,
  subject: model,
  name: null,
  groups: [],
  permissions: new Set(['can_access_api']),
  credential: { kind: 'jwt' },
}

const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

const text = 'warm'
const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 }
const whole = {
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text } }],
}
const chunks = [
  ...Array.from({ length: 8 }, () => ({ choices: [{ index: 0, delta: { content: text } }] })),
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage },
]

/** The upstream: a chat completion. */
async function respond(request: Request): Promise<Response> {
  const { stream } = asRecord(await request.json())
  if (stream !== true) return Response.json({ ...whole, usage })
  const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  const body = `${events.join('')}data: [DONE]\n\n`
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
