import { parseArgs } from 'node:util'
import { workerDescriptors } from './support/descriptors.ts'
import { type Gateway, startGateway, waitForIdle } from './support/gateway.ts'
import { runClient, startServer } from './support/load.ts'
import { numberIn, type RunOptions, readRunOptions, runFlags } from './support/options.ts'
import { treeMemoryBytes, treeUsage } from './support/process-tree.ts'
import { faultCount, formatSamples, writeResult } from './support/report.ts'
import type { StormJob, StormReport } from './support/storm-job.ts'
import {
  endsAfterLeaving,
  formatStorm,
  type ResourceUse,
  type StormResult,
} from './support/storm-results.ts'
import { type Faults, noFaults, noteFailure } from './support/stream-check.ts'

export const summary = 'Time until the upstream request of a disconnected client ends, and leaks.'
export const usage =
  '[--quick] [--clients 1000] [--seconds 30] [--limit-ms 1000] [--seed 1] ' +
  '[--database postgres://…] [--set key=value]… [--json FILE]'

const quickSeconds = 15
/** The first storm warms up: it shows what a gateway retains after a storm. */
const firstShare = 0.4
const sampleEveryMs = 500
/** Pause after a storm before leaks are checked. */
const restMs = 3_000
/** Database connections, and those that read metrics. */
const spareDescriptors = 16
/** Normal fluctuation of memory by garbage. */
const memoryGrowthMax = 256 * 2 ** 20

type Options = RunOptions & {
  readonly clients: number
  readonly seconds: number
  readonly limitMs: number
  readonly seed: number
}

type Target = Gateway & { readonly upstreamPort: number }

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const target = await start(options)
  const faults = noFaults()
  const first = Math.round(options.seconds * firstShare)
  await storm(target, { options, lastsMs: first * 1000, seed: options.seed + 1 })
  const before = await rest(target, options)
  const result = await storm(target, {
    options,
    lastsMs: options.seconds * 1000,
    seed: options.seed,
  })
  const after = await rest(target, options)
  findLeaks({ options, result, before, after, faults })
  console.log(`\n${formatStorm(result, { ...options, before, after })}`)
  const all = [faults, result.report.faults].filter((found) => faultCount(found) > 0)
  for (const found of all) console.log(`${found.failed} faults${formatSamples(found)}`)
  // The complete list is too long to be useful.
  const { left, ...report } = result.report
  const shown = { ...result, report: { ...report, left: left.length }, ends: result.ends.size }
  writeResult('abort-storm', options, {
    before,
    after,
    faults,
    result: { ...shown, afterLeavingMs: endsAfterLeaving(result) },
  })
  return all.length === 0 ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      clients: { type: 'string', default: '1000' },
      seconds: { type: 'string' },
      'limit-ms': { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
    },
  })
  const seconds = values.seconds ?? (values.quick ? String(quickSeconds) : '30')
  return {
    ...readRunOptions(values),
    clients: numberIn(values.clients, { name: 'clients', from: 1, to: 5_000 }),
    seconds: numberIn(seconds, { name: 'seconds', from: 1, to: 600 }),
    limitMs: numberIn(values['limit-ms'], { name: 'limit-ms', from: 1, to: 60_000 }),
    seed: numberIn(values.seed, { name: 'seed', from: 0, to: 2 ** 31 }),
  }
}

async function start({ databaseServer, settings, seconds }: Options): Promise<Target> {
  const upstreamPort = await startServer('storm-upstream.ts', [String(seconds * 2 + 300)])
  const gateway = await startGateway({
    upstreamPort,
    upstreamApi: 'chat',
    databaseServer,
    settings,
  })
  return { ...gateway, upstreamPort }
}

async function storm(
  target: Target,
  { options, lastsMs, seed }: { options: Options; lastsMs: number; seed: number },
): Promise<StormResult> {
  const { port, pid, bearer } = target
  const job: StormJob = { port, bearer, clients: options.clients, lastsMs, seed }
  const cpuBeforeMs = treeUsage(pid).cpuMs
  let descriptorsMax = 0
  let memoryMax = 0
  const sampling = setInterval(() => {
    descriptorsMax = Math.max(descriptorsMax, sum(workerDescriptors(pid)))
    memoryMax = Math.max(memoryMax, treeMemoryBytes(pid))
  }, sampleEveryMs)
  console.log(`${options.clients} clients for ${Math.round(lastsMs / 1000)} s`)
  const report = await runClient<StormReport>('storm-client.ts', job)
  clearInterval(sampling)
  const cpuMs = treeUsage(pid).cpuMs - cpuBeforeMs
  // Requests that are still open have no end time.
  await Bun.sleep(options.limitMs)
  const listed: unknown = await askUpstream(target, '/ends')
  const ends = new Map(listed as [id: number, atMs: number][])
  return { report, ends, cpuMs, lastsMs, descriptorsMax, memoryMax }
}

async function askUpstream({ upstreamPort }: Target, path: string): Promise<unknown> {
  const headers = { Connection: 'close' }
  return (await fetch(`http://127.0.0.1:${upstreamPort}${path}`, { headers })).json()
}

/** Resources of an idle gateway. */
async function rest(target: Target, { limitMs }: Options): Promise<ResourceUse> {
  const generations = await waitForIdle(target.port, limitMs)
  await Bun.sleep(restMs)
  const stats = (await askUpstream(target, '/stats')) as {
    requestsOpen: number
    connectionsOpen: number
  }
  return {
    generations,
    upstreamRequests: stats.requestsOpen,
    upstreamConnections: stats.connectionsOpen,
    descriptors: sum(workerDescriptors(target.pid)),
    memoryBytes: treeMemoryBytes(target.pid),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function findLeaks(seen: {
  readonly options: Options
  readonly result: StormResult
  readonly before: ResourceUse
  readonly after: ResourceUse
  readonly faults: Faults
}): void {
  const { options, result, before, after, faults } = seen
  const fail = (count: number, sentence: string) => noteFailure(faults, sentence, count)
  const { tooLate, sent } = endsAfterLeaving(result, options.limitMs)
  fail(
    tooLate,
    `${tooLate} requests ended later than ${options.limitMs} ms after their client left`,
  )
  fail(sent, `${sent} requests reached the upstream that their clients never sent whole`)
  fail(after.generations, `${after.generations} generations still run`)
  fail(after.upstreamRequests, `${after.upstreamRequests} requests to the upstream are still open`)
  const own = (print: ResourceUse) => print.descriptors - print.upstreamConnections
  const held = own(after) - own(before)
  fail(held - spareDescriptors, `${held} descriptors more than before`)
  const grown = after.memoryBytes - before.memoryBytes
  fail(grown > memoryGrowthMax ? 1 : 0, `memory grew by ${Math.round(grown / 2 ** 20)} MiB`)
}
