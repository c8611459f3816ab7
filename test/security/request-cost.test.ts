import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { asRecord, parseJson } from '#lib/json.ts'
import {
  childrenOf,
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { type HostileRequest, hostileRequests } from './hostile-requests.ts'

/**
 * The measure of Envoy's threat model: no request costs the gateway more than 100 times its own bytes in
 * memory, or 100 times the processor time of its client.
 */
const factorMax = 100
/** Repeated, so that the clock of the kernel (10 ms) and compilation do not matter. */
const repetitions = 3
/** Below this size the memory of a process says nothing about one request. */
const measurableBytes = 1_048_576

let gateway: GatewayProcess
let worker: number
let bearers: { user: string; admin: string }

beforeAll(async () => {
  gateway = await startGatewayProcess()
  worker = childrenOf(gateway.pid)[0] ?? 0
  bearers = { user: await signToken(['users']), admin: await signToken(['admins']) }
  for (const hostile of hostileRequests) await send({ ...hostile, body: () => '{}' })
})
afterAll(stopProcesses)

async function send({ operation, headers, body, isAdmin }: HostileRequest) {
  const [method = '', path = ''] = operation.split(' ')
  const response = await fetch(gateway.url() + path, {
    method,
    headers: {
      authorization: `Bearer ${isAdmin ? bearers.admin : bearers.user}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: body(),
  })
  return { status: response.status, text: await response.text() }
}

/** Of the worker, in milliseconds. */
function processorMs(): number {
  const [, fields = ''] = readFileSync(`/proc/${worker}/stat`, 'utf8').split(') ')
  const [user, system] = fields.split(' ').slice(11, 13).map(Number)
  return ((user ?? 0) + (system ?? 0)) * 10
}

function kibibytesOf(name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${worker}/status`, 'utf8')
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1])
}

/** The memory that the worker takes in addition, at its peak. */
async function peakBytes(work: () => Promise<void>): Promise<number> {
  writeFileSync(`/proc/${worker}/clear_refs`, '5')
  const before = kibibytesOf('VmRSS')
  await work()
  return (kibibytesOf('VmHWM') - before) * 1024
}

test
  .skipIf(process.platform !== 'linux')
  .each(hostileRequests.map((one) => [one.name, one] as const))(
  '%s costs at most 100 times what it costs its client',
  async (_, hostile) => {
    const bytes = Buffer.byteLength(hostile.body())
    const used = process.cpuUsage()
    const servedFrom = processorMs()
    let answer = { status: 0, text: '' }
    const peaks: number[] = []
    for (let done = 0; done < repetitions; done++) {
      peaks.push(
        await peakBytes(async () => {
          answer = await send(hostile)
        }),
      )
    }
    const { user, system } = process.cpuUsage(used)
    const cost = { server: processorMs() - servedFrom, client: (user + system) / 1000 }
    expect(answer.status).toBeLessThan(500)
    if (answer.status >= 400) expect(asRecord(parseJson(answer.text))['error']).toBeDefined()
    expect(cost.server).toBeLessThan(factorMax * cost.client)
    // Garbage of earlier requests only adds to a peak.
    expect(Math.min(...peaks)).toBeLessThan(factorMax * Math.max(bytes, measurableBytes))
  },
)

test('the worker is the one that started', () => {
  expect(childrenOf(gateway.pid)).toEqual([worker])
})
