import { parseArgs } from 'node:util'
import { createDatabase } from './support/database.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob } from './support/load-job.ts'
import { gatewayPath } from './support/load-request.ts'
import { numberIn, UsageError } from './support/options.ts'
import { formatFaults, formatSamples, isClean, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import { readSettings, settingsOption } from './support/settings.ts'
import { warmUp } from './support/warm-up.ts'
import { workerDescriptors } from './support/worker-descriptors.ts'
import {
  formatSpread,
  formatThroughput,
  type MeasureName,
  measureNames,
  type SpreadResult,
  type WorkersResult,
} from './support/workers-results.ts'

export const question =
  'How much more do two workers on one port get done than one, at what cost, and how evenly do ' +
  'connections spread over them?'
export const usage =
  '--database postgres://… [--quick] [--workers 2] [--log-level info] [--set key=value]… ' +
  '[--json FILE]'

type Pace = {
  readonly rounds: number
  readonly warmUp: { readonly stepMs: number; readonly limitMs: number }
  readonly windowMs: number
  readonly spreadRounds: number
}

const fullPace: Pace = {
  rounds: 5,
  warmUp: { stepMs: 2_500, limitMs: 30_000 },
  windowMs: 6_000,
  spreadRounds: 5,
}
const quickPace: Pace = {
  rounds: 2,
  warmUp: { stepMs: 1_500, limitMs: 1_500 },
  windowMs: 1_500,
  spreadRounds: 1,
}

const mockLifetimeS = 3_600
const answerBytes = 1_024
const promptBytes = 1_024
/** An answer that comes without a pace; then the next one. */
const flatTokens = 2_000
/** More than enough to keep every worker busy, however the kernel deals them out. */
const connectionsOf: Readonly<Record<MeasureName, number>> = {
  'whole answers': 64,
  'events flat out': 32,
}
/** Long-lived connections, of which each worker gets what its part of the hash is. */
const spreadConnections = 1_000
const settleMs = 500
const lateMs = 250
const slackMs = 15_000

type Options = {
  readonly quick: boolean
  readonly workers: number
  readonly databaseUrl: string
  readonly logLevel: string
  readonly settings: readonly string[]
  readonly jsonFile: string | undefined
}

type Crew = { readonly workers: number; readonly gateway: Gateway }

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const pace = options.quick ? quickPace : fullPace
  const crews = await startCrews(options)
  for (const { gateway } of crews) {
    await warmUp(
      measureNames.map((name) => makeJob(name, gateway, pace.windowMs)),
      pace.warmUp,
    )
  }
  const results: WorkersResult[] = []
  for (let round = 0; round < pace.rounds; round++) {
    for (const { workers, gateway } of inTurn(crews, round)) {
      for (const measure of measureNames) {
        const report = await runLoad(makeJob(measure, gateway, pace.windowMs))
        results.push({ round, workers, measure, report })
      }
    }
    console.log(`round ${round + 1} of ${pace.rounds} is done`)
  }
  const spread = await measureSpread(crews, pace.spreadRounds)
  console.log(`\n${formatThroughput(results)}\n\n${formatSpread(spread)}`)
  const reports = [...results, ...spread].map(({ report }) => report)
  const unclean = reports.filter((report) => !isClean(report))
  for (const { faults } of unclean) console.log(formatFaults(faults) + formatSamples(faults))
  if (options.jsonFile !== undefined) {
    writeResult(options.jsonFile, { bench: 'workers', options, results, spread })
  }
  return unclean.length === 0 ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      workers: { type: 'string', default: '2' },
      database: { type: 'string' },
      'log-level': { type: 'string', default: 'info' },
      set: settingsOption,
      json: { type: 'string' },
    },
  })
  if (values.database === undefined) {
    throw new UsageError('--database is needed: the embedded database is for one process')
  }
  return {
    quick: values.quick,
    workers: Math.round(numberIn(values.workers, { name: 'workers', from: 2, to: 8 })),
    databaseUrl: values.database,
    logLevel: values['log-level'],
    settings: readSettings(values.set),
    jsonFile: values.json,
  }
}

/** One worker and several, each gateway with a database of its own and the same upstream. */
async function startCrews(options: Options): Promise<Crew[]> {
  const upstreamPort = await startMockUpstream(mockLifetimeS)
  const { databaseUrl, logLevel, settings } = options
  const crews: Crew[] = []
  for (const workers of [1, options.workers]) {
    const gateway = await startGateway({
      ...{ upstreamPort, upstreamApi: 'chat', workers, logLevel, settings },
      databaseUrl: await createDatabase(databaseUrl),
    })
    crews.push({ workers, gateway })
  }
  return crews
}

const barePlan = { stepMs: 0, pauseSecondsMax: 0, lastsMs: 0, seed: 0, tokensPerSecond: 0 }

function makeJob(measure: MeasureName, gateway: Gateway, windowMs: number): LoadJob {
  const isFlat = measure === 'events flat out'
  const plan = isFlat
    ? { ...barePlan, tokens: flatTokens, tokenBytes: 0 }
    : { ...barePlan, tokens: 1, tokenBytes: answerBytes }
  return {
    ...jobFor(gateway),
    ...{ stream: isFlat, mode: 'repeat', connections: connectionsOf[measure], plans: [plan] },
    ...{ rampMs: 100, windowStartMs: settleMs, windowMs, deadlineMs: windowMs + slackMs },
  }
}

/** Quiet streams on many connections, counted while all are open by what each worker holds. */
async function measureSpread(crews: readonly Crew[], rounds: number): Promise<SpreadResult[]> {
  const results: SpreadResult[] = []
  for (let round = 0; round < rounds; round++) {
    for (const { workers, gateway } of crews.filter((crew) => crew.workers > 1)) {
      // Connections to the upstream that nobody uses are closed by then.
      await Bun.sleep(5_000)
      const before = workerDescriptors(gateway.pid)
      const [rampMs, windowMs] = [1_000, 1_000]
      const windowStartMs = rampMs + 2_000
      const lastsMs = windowStartMs + windowMs
      const plan = { ...barePlan, tokenBytes: 0, tokensPerSecond: 1, lastsMs }
      const running = runLoad({
        ...jobFor(gateway),
        ...{ stream: true, mode: 'once', connections: spreadConnections },
        plans: [{ ...plan, tokens: Math.ceil(lastsMs / 1000) }],
        ...{ rampMs, windowStartMs, windowMs, deadlineMs: lastsMs + slackMs },
      })
      await Bun.sleep(windowStartMs + windowMs / 2)
      const open = workerDescriptors(gateway.pid)
      // A stream has a socket to its client and one to its upstream.
      const connections = open.map((count, at) => Math.round((count - (before[at] ?? 0)) / 2))
      results.push({ round, workers, connections, report: await running })
    }
  }
  return results
}

function jobFor({ port, bearer, pid }: Gateway) {
  return {
    ...{ port, bearer, measurePid: pid, path: gatewayPath('responses') },
    protocol: 'responses' as const,
    ...{ store: false, promptBytes, lateMs, progressMs: 0 },
  }
}
