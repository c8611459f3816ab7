import { parseArgs } from 'node:util'
import { startGateway } from './support/gateway.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import { type LoadJob, type LoadProgress, type LoadReport, lateMs } from './support/load-job.ts'
import { streamedResponses } from './support/load-request.ts'
import type { Protocol } from './support/mock-frames.ts'
import { numberIn, oneOf } from './support/options.ts'
import { barePlan, type Plan, tokensWithin } from './support/plan.ts'
import {
  formatSlope,
  type MemorySample,
  toMebibytes,
  treeMemoryBytes,
} from './support/process-tree.ts'
import { formatFaults, formatSamples, isClean, writeResult } from './support/report.ts'
import { formatTable } from './support/table.ts'

export const summary = 'Completeness, lateness and memory of long streams with pauses.'
export const usage =
  '[--quick] [--preset record] [--streams 100] [--seconds 600] [--tokens-per-second 2] ' +
  '[--pause-max 30] [--seed 1] [--upstream-api chat|responses] [--store] ' +
  '[--database postgres://…] [--json FILE]'

const streamsMax = 10_000
const secondsMax = 3_600
/** Default options. `record` produced the results in bench/results. */
const presets = {
  usual: { streams: 100, seconds: 600, tokensPerSecond: 2, pauseSecondsMax: 30 },
  quick: { streams: 200, seconds: 45, tokensPerSecond: 10, pauseSecondsMax: 20 },
  record: { streams: 1_000, seconds: 600, tokensPerSecond: 20, pauseSecondsMax: 30 },
} as const

/** Short runs are sampled more often. */
const sampleEveryMs = { short: 2_000, long: 10_000 }
const shortSeconds = 120
/** Shorter runs cannot show growth. */
const slopeMsMin = 120_000
const rampMs = 2_000
/** Time after which an unfinished run fails. */
const slackMs = 60_000

type Options = {
  readonly streams: number
  readonly seconds: number
  readonly tokensPerSecond: number
  readonly pauseSecondsMax: number
  readonly seed: number
  readonly upstreamApi: Protocol
  readonly store: boolean
  readonly databaseServer: string | undefined
  readonly jsonFile: string | undefined
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const mockPort = await startMockUpstream(options.seconds + 300)
  const gateway = await startGateway({
    upstreamPort: mockPort,
    upstreamApi: options.upstreamApi,
    databaseServer: options.databaseServer,
    // The streams last exactly as long as the default deadline, which must not end them.
    totalDeadlineMs: Math.max(600_000, options.seconds * 1000 + slackMs),
  })
  const job: LoadJob = {
    ...streamedResponses(gateway),
    store: options.store,
    connections: options.streams,
    mode: 'once',
    rampMs,
    windowStartMs: 0,
    windowMs: options.seconds * 1000 + rampMs,
    plans: makePlans(options),
    deadlineMs: options.seconds * 1000 + slackMs,
    progressMs: sampleMs(options),
  }
  const memory: MemorySample[] = [{ atMs: 0, bytes: treeMemoryBytes(gateway.pid) }]
  const report = await runLoad(job, (progress) => {
    memory.push({ atMs: progress.elapsedMs, bytes: treeMemoryBytes(gateway.pid) })
    printProgress(progress, memory)
  })
  const mock = await (await fetch(`http://127.0.0.1:${mockPort}/stats`)).json()
  print(options, report, memory)
  writeResult('long-streams', options, { report, memory, mock })
  return isClean(report) ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      preset: { type: 'string' },
      streams: { type: 'string' },
      seconds: { type: 'string' },
      'tokens-per-second': { type: 'string' },
      'pause-max': { type: 'string' },
      seed: { type: 'string', default: '1' },
      'upstream-api': { type: 'string', default: 'chat' },
      store: { type: 'boolean', default: false },
      database: { type: 'string' },
      json: { type: 'string' },
    },
  })
  const words = ['usual', 'quick', 'record'] as const
  const chosen = values.preset ?? (values.quick ? 'quick' : 'usual')
  const preset = presets[oneOf(chosen, { name: 'preset', words })]
  const number = (
    name: 'streams' | 'seconds' | 'tokens-per-second' | 'pause-max',
    otherwise: number,
    bounds: { readonly from: number; readonly to: number },
  ) => numberIn(values[name] ?? String(otherwise), { name, ...bounds })
  return {
    streams: number('streams', preset.streams, { from: 1, to: streamsMax }),
    seconds: number('seconds', preset.seconds, { from: 1, to: secondsMax }),
    tokensPerSecond: number('tokens-per-second', preset.tokensPerSecond, { from: 0.1, to: 1000 }),
    pauseSecondsMax: number('pause-max', preset.pauseSecondsMax, { from: 0, to: 240 }),
    seed: numberIn(values.seed, { name: 'seed', from: 0, to: 2 ** 31 }),
    upstreamApi: oneOf(values['upstream-api'], {
      name: 'upstream-api',
      words: ['chat', 'responses'],
    }),
    store: values.store,
    databaseServer: values.database,
    jsonFile: values.json,
  }
}

function sampleMs({ seconds }: Options): number {
  return seconds <= shortSeconds ? sampleEveryMs.short : sampleEveryMs.long
}

/** Every stream has its own pauses and lasts the whole time. */
function makePlans(options: Options): Plan[] {
  return Array.from({ length: options.streams }, (_, number) => {
    const { tokensPerSecond, pauseSecondsMax } = options
    const plan = {
      ...barePlan,
      tokensPerSecond,
      pauseSecondsMax,
      lastsMs: options.seconds * 1000,
      seed: options.seed * streamsMax + number,
    }
    return { ...plan, tokens: tokensWithin(plan, options.seconds) }
  })
}

function printProgress(progress: LoadProgress['progress'], memory: readonly MemorySample[]): void {
  const { elapsedMs, streamsOpen, tokens, heartbeats, faults } = progress
  const mebibytes = toMebibytes(memory.at(-1)?.bytes ?? 0)
  console.log(
    `${Math.round(elapsedMs / 1000)} s: ${streamsOpen} streams, ${tokens} tokens, ` +
      `${heartbeats} heartbeats, ${mebibytes} MiB; ${formatFaults(faults)}`,
  )
}

function print(options: Options, report: LoadReport, memory: readonly MemorySample[]): void {
  const { latenessMs: late, gapMs: gap, gapBeyondMs: beyond } = report
  const bytes = memory.map((sample) => sample.bytes)
  const rows = [
    ['streams', `${options.streams} × ${options.seconds} s, ${report.requests} completed`],
    ['events', `${report.events}, of them ${report.tokens} tokens`],
    ['heartbeats', `${report.heartbeats}`],
    ['faults', formatFaults(report.faults)],
    ['lag behind schedule, ms', `p50 ${late.p50}, p99 ${late.p99}, p99.9 ${late.p999}`],
    ['… max', `${late.max} ms; ${report.lateTokens} later than ${lateMs} ms`],
    ['gap beyond plan, ms', `p50 ${beyond.p50}, p99 ${beyond.p99}, p99.9 ${beyond.p999}`],
    ['longest gap, s', (gap.max / 1000).toFixed(1)],
    ['memory at start', `${toMebibytes(bytes[0] ?? 0)} MiB`],
    ['memory, peak', `${toMebibytes(Math.max(...bytes))} MiB`],
    ['memory, second half', formatSlope(memory, slopeMsMin / sampleMs(options))],
  ]
  console.log(`\n${formatTable(['what', `Sluice, upstream ${options.upstreamApi}`], rows)}`)
  console.log(formatSamples(report.faults))
}
