/**
 * Runs the gateway in this process in front of the upstream at the given port, and prints per kind of
 * request how many timers, abort controllers and so on one request starts. Work that does not belong
 * to requests is less than one per request.
 */

import { startGateway } from '../gateway.ts'
import { countCalls, countedKinds } from './count-calls.ts'
import { type RequestCounts, requests } from './requests.ts'

const counts = countCalls()
const warmUps = 20
const measured = 100

const gateway = await startGateway({
  upstream: [{ name: 'counted', url: `http://127.0.0.1:${process.argv[2]}/v1`, api: 'chat' }],
  // Its batches follow the clock: on a busy machine each request may meet one.
  usage: { enabled: false },
})
const authorization = `Bearer ${await gateway.token()}`

async function send({ path, body }: (typeof requests)[number]): Promise<void> {
  const init = body === null ? {} : { method: 'POST', body }
  const headers = { authorization, 'content-type': 'application/json' }
  const response = await fetch(gateway.url + path, { ...init, headers })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
}

const results: RequestCounts[] = []
for (const request of requests) {
  for (let at = 0; at < warmUps; at++) await send(request)
  const before = { ...counts }
  for (let at = 0; at < measured; at++) await send(request)
  const each = countedKinds.map((kind) => {
    return [kind, Math.floor((counts[kind] - before[kind]) / measured)] as const
  })
  results.push({ request: request.name, ...Object.fromEntries(each) } as RequestCounts)
}
console.log(JSON.stringify(results))
await gateway.stop()
process.exit(0)
