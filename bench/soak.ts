import { parseArgs } from 'node:util'
import { type Gateway, startGateway } from './support/gateway.ts'
import { runClient, startServer } from './support/load.ts'
import { numberIn } from './support/options.ts'
import { modelName } from './support/plan.ts'
import {
  formatSlope,
  type MemorySample,
  slopePerMinute,
  toMebibytes,
  treeMemoryBytes,
  treePids,
  treeWaitMs,
} from './support/process-tree.ts'
import { countWarnings, formatLogLines, writeResult } from './support/report.ts'
import { readLateLoops, waitForZeroGauges } from './support/soak-gauges.ts'
import type { SoakJob, SoakProgress, SoakReport } from './support/soak-job.ts'
import { readerStallMs } from './support/soak-slow-scenes.ts'
import { formatTable } from './support/table.ts'

export const summary = 'Correctness, leaks and memory under mixed load with a faulty upstream.'
export const usage =
  '[--quick] [--minutes 30] [--clients 40] [--seed 1] [--database postgres://…] [--workers 1] ' +
  '[--kill-worker] [--json FILE]'

const sampleEveryMs = 5_000
/** Maximum memory growth in the second half. */
const slopeMaxMibPerMinute = 1
/** Minimum samples (ten minutes) for a slope. */
const samplesForSlope = 120
/** Time after which all gauges must be zero: deadlines and resume windows have passed. */
const restWithinMs = 90_000
/** When a worker is killed, as a share of the run; leaves time for memory to level off. */
const killAfterPart = 0.25

type Options = {
  readonly seconds: number
  readonly clients: number
  readonly seed: number
  readonly databaseServer: string | undefined
  readonly workers: number
  readonly killsWorker: boolean
  readonly jsonFile: string | undefined
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const { workers } = options
  const gateway = await startAll(options)
  const killAtMs = options.killsWorker ? Date.now() + options.seconds * 1_000 * killAfterPart : null
  if (killAtMs !== null) setTimeout(() => killWorker(gateway), killAtMs - Date.now())
  const memory: MemorySample[] = [{ atMs: 0, bytes: treeMemoryBytes(gateway.pid) }]
  const report = await runClient<SoakReport, SoakProgress['progress']>(
    'soak-clients.ts',
    await makeJob(gateway, options, killAtMs),
    (progress) => {
      memory.push({ atMs: progress.elapsedMs, bytes: treeMemoryBytes(gateway.pid) })
      printProgress(progress, memory)
    },
  )
  console.log('the clients have left')
  const waitedMs = treeWaitMs(gateway.pid)
  const lateLoops = await readLateLoops(gateway.port)
  const restless = await waitForZeroGauges(gateway.port, { workers, withinMs: restWithinMs })
  const restBytes = treeMemoryBytes(gateway.pid)
  const warnings = countWarnings(gateway.logFile)
  const isFlat = memory.length < samplesForSlope || slopePerMinute(memory) <= slopeMaxMibPerMinute
  const result = { report, memory, waitedMs, lateLoops, restless, restBytes, warnings }
  print(result, options)
  writeResult('soak', options, result)
  const wrong = Object.values(report.kinds).reduce((sum, tally) => sum + tally.wrong, 0)
  return wrong === 0 && restless.length === 0 && isFlat ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      minutes: { type: 'string' },
      clients: { type: 'string', default: '40' },
      seed: { type: 'string', default: '1' },
      database: { type: 'string' },
      workers: { type: 'string', default: '1' },
      'kill-worker': { type: 'boolean', default: false },
      json: { type: 'string' },
    },
  })
  const minutes = values.minutes ?? (values.quick ? '1' : '30')
  const whole = (text: string, name: string, to: number) =>
    Math.round(numberIn(text, { name, from: 1, to }))
  return {
    seconds: numberIn(minutes, { name: 'minutes', from: 0.1, to: 600 }) * 60,
    clients: whole(values.clients, 'clients', 500),
    seed: whole(values.seed, 'seed', 100_000),
    databaseServer: values.database,
    workers: whole(values.workers, 'workers', values.database === undefined ? 1 : 16),
    killsWorker: values['kill-worker'],
    jsonFile: values.json,
  }
}

async function startAll({ databaseServer, workers }: Options): Promise<Gateway> {
  const upstreamPort = await startServer('faulty-upstream.ts', [])
  const enginePort = await startServer('speech-engine.ts', [])
  return startGateway({
    upstreamPort,
    upstreamApi: 'chat',
    databaseServer,
    workers,
    configLines: configuration(upstreamPort, enginePort),
  })
}

/** One model per upstream protocol, short deadlines, and caches that are full in the second half. */
function configuration(upstreamPort: number, enginePort: number): string {
  const upstreams = ['responses', 'messages'].map(
    (api) =>
      `[[upstream]]\nname = "${api}"\napi = "${api}"\nmodels = ["${modelName}"]\n` +
      `url = "http://127.0.0.1:${upstreamPort}/v1"\n`,
  )
  const models = ['chat', 'responses', 'messages'].map((api) => {
    const upstream = api === 'chat' ? 'default' : api
    return `[[model]]\nname = "soak-${api}"\nupstreams = ["${upstream}"]\nupstream_model = "${modelName}"\n`
  })
  return [
    '[deadlines]\nfirst_event_ms = 6000\ngap_ms = 5000\ntotal_ms = 60000',
    '[retry]\nbackoff_ms = 50',
    `[stream]\nheartbeat_ms = 3500\nreader_stall_ms = ${readerStallMs}`,
    '[responses]\nttl_s = 300\nstream_ttl_s = 120\nabandon_ms = 3000',
    '[files]\ntrash_s = 0',
    '[tokens]\ntexts_max = 500',
    '[speech]\nresume_ms = 2000',
    '[[engine]]\nname = "stub"\nkind = "vosk"\nlanguages = ["en"]',
    `url = "ws://127.0.0.1:${enginePort}"`,
    ...upstreams,
    ...models,
    '',
  ].join('\n')
}

async function makeJob(
  gateway: Gateway,
  options: Options,
  killAtMs: number | null,
): Promise<SoakJob> {
  const { seconds, seed, workers, clients } = options
  const bearers = Array.from({ length: clients }, (_, number) =>
    gateway.token(`client ${number}`, ['users']),
  )
  return {
    port: gateway.port,
    seconds,
    seed,
    workers,
    killAtMs,
    progressMs: sampleEveryMs,
    bearers: await Promise.all(bearers),
    adminBearer: await gateway.token('administrator', ['admins']),
  }
}

/** Kills the oldest child of the supervisor with SIGKILL. */
function killWorker({ pid }: Gateway): void {
  const [, worker] = treePids(pid)
  if (worker === undefined) throw new Error('there is no worker to kill')
  process.kill(worker, 'SIGKILL')
  console.log(`worker ${worker} was killed`)
}

function printProgress(
  { elapsedMs, done, wrong }: SoakProgress['progress'],
  memory: readonly MemorySample[],
): void {
  const mebibytes = toMebibytes(memory.at(-1)?.bytes ?? 0)
  console.log(`${Math.round(elapsedMs / 1000)} s: ${done} done, ${wrong} wrong, ${mebibytes} MiB`)
}

type Result = {
  readonly report: SoakReport
  readonly memory: readonly MemorySample[]
  /** Time in which it was runnable but had no core; null if the kernel does not report it. */
  readonly waitedMs: number | null
  readonly lateLoops: readonly [late: number, all: number]
  readonly restless: readonly string[]
  readonly restBytes: number
  /** Log lines of these levels, by message. */
  readonly warnings: Readonly<Record<string, number>>
}

function print(result: Result, options: Options): void {
  const { report, memory, waitedMs, lateLoops, restless, restBytes, warnings } = result
  const kinds = Object.entries(report.kinds).toSorted(([one], [other]) => one.localeCompare(other))
  const rows = kinds.map(([kind, { whole, failed, left, cut, wrong }]) =>
    [kind, whole, failed, left, ...(options.killsWorker ? [cut] : []), wrong].map(String),
  )
  const header = ['kind', 'whole', 'failed as it should', 'left by its client']
  const columns = [...header, ...(options.killsWorker ? ['cut by the kill'] : []), 'wrong']
  const bytes = memory.map((sample) => sample.bytes)
  const facts = [
    ['memory at start', `${toMebibytes(bytes[0] ?? 0)} MiB`],
    ['memory, peak', `${toMebibytes(Math.max(...bytes))} MiB`],
    ['memory, second half', formatSlope(memory, samplesForSlope)],
    ['… limit', `${slopeMaxMibPerMinute} MiB/min`],
    ['memory at rest afterwards', `${toMebibytes(restBytes)} MiB`],
    ['waited for a core', waitedMs === null ? '-' : `${(waitedMs / 1_000).toFixed(1)} s`],
    ['event loop late by more than 1 s', `${lateLoops[0]} of ${lateLoops[1]} times`],
    ['gauges not at zero', restless.length === 0 ? 'nothing' : restless.join('; ')],
  ]
  const tables = [formatTable(columns, rows), formatTable(['what', 'soak'], facts)]
  if (Object.keys(warnings).length > 0) tables.push(formatLogLines(warnings))
  console.log(`\n${tables.join('\n\n')}`)
  for (const sample of report.samples) console.log(`    ${sample}`)
}
