/**
 * Upstream of `traffic`: an inference server with a number of slots and a fixed service time. It says in
 * its response who it is and when the request arrived.
 *
 *     bun bench/traffic-upstream.ts NAME SERVICE_MS SLOTS [port]
 *
 * Prints `{"port":…}` when it listens; exits when standard input closes. `GET /stats` returns and
 * restarts its statistics.
 */
import { modelName, wallClockMs } from './support/plan.ts'
import type { UpstreamStats } from './support/traffic-job.ts'

const [name = '', serviceMs = '0', slots = '1', port = '0'] = process.argv.slice(2)
const lifetimeS = 1_800

let inFlight = 0
let inFlightMax = 0
let requests = 0
let busyMs = 0
let sinceMs = performance.now()
let changedMs = sinceMs

/** Adds the slots in use since the last change. */
function change(by: number): void {
  const nowMs = performance.now()
  busyMs += Math.min(inFlight, Number(slots)) * (nowMs - changedMs)
  changedMs = nowMs
  inFlight += by
  inFlightMax = Math.max(inFlightMax, inFlight)
}

function takeStats(): UpstreamStats {
  change(0)
  const stats = { busyMs, forMs: changedMs - sinceMs, requests, inFlight, inFlightMax }
  busyMs = 0
  requests = 0
  inFlightMax = inFlight
  sinceMs = changedMs
  return stats
}

async function complete(request: Request): Promise<Response> {
  const arrivedAtMs = wallClockMs()
  let isOver = false
  const end = () => {
    if (!isOver) change(-1)
    isOver = true
  }
  requests++
  change(1)
  request.signal.addEventListener('abort', end)
  await request.arrayBuffer()
  await Bun.sleep(Number(serviceMs))
  end()
  return Response.json({
    id: 'chatcmpl-traffic',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: modelName,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: `${name} ${arrivedAtMs}` },
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 20, total_tokens: 40 },
  })
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  idleTimeout: 0,
  fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/v1/chat/completions') return complete(request)
    if (pathname === '/v1/models') return Response.json({ object: 'list', data: [] })
    if (pathname === '/stats') return Response.json(takeStats())
    return new Response(null, { status: 404 })
  },
})
console.log(JSON.stringify({ port: server.port }))
process.stdin.on('end', () => process.exit(0)).resume()
setTimeout(() => process.exit(0), lifetimeS * 1_000)
