import { parseArgs } from 'node:util'
import { type CrowdSize, crowdJob } from './support/concurrent-streams.ts'
import { workerDescriptors } from './support/descriptors.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob } from './support/load-job.ts'
import { streamedResponses } from './support/load-request.ts'
import {
  numberIn,
  type RunOptions,
  readRunOptions,
  runFlags,
  UsageError,
} from './support/options.ts'
import { barePlan } from './support/plan.ts'
import { printFaults, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import { fullWarmUp, quickWarmUp, type WarmUpPace, warmUp } from './support/warm-up.ts'
import {
  formatSpread,
  formatThroughput,
  type MeasureName,
  measureNames,
  type SpreadResult,
  type WorkersResult,
} from './support/workers-results.ts'

export const summary =
  'Throughput and CPU of several workers compared with one, and the distribution of connections.'
export const usage =
  '--database postgres://… [--quick] [--workers 2] [--log-level info] [--set key=value]… ' +
  '[--json FILE]'

type Pace = {
  readonly rounds: number
  readonly warmUp: WarmUpPace
  readonly windowMs: number
  readonly spreadRounds: number
}

const fullPace: Pace = {
  rounds: 5,
  warmUp: fullWarmUp,
  windowMs: 6_000,
  spreadRounds: 5,
}
const quickPace: Pace = {
  rounds: 2,
  warmUp: quickWarmUp,
  windowMs: 1_500,
  spreadRounds: 1,
}

const mockLifetimeS = 3_600
const responseBytes = 1_024
/** Unpaced responses, one after the other. */
const flatTokens = 2_000
/** Enough to keep every worker busy despite uneven distribution. */
const connectionsOf: Readonly<Record<MeasureName, number>> = {
  'whole responses': 64,
  'events unpaced': 32,
}
/** Long-lived connections, distributed over workers by the kernel. */
const spreadCrowd: CrowdSize = {
  streams: 1_000,
  tokensPerSecond: 1,
  rampMs: 1_000,
  windowMs: 1_000,
}
const settleMs = 500
const slackMs = 15_000

type Options = RunOptions & {
  readonly workers: number
  readonly logLevel: string
}

type WorkerSet = { readonly workers: number; readonly gateway: Gateway }

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
  const isWhole = printFaults(
    [...results, ...spread].map(({ round, workers, report }) => ({
      where: `round ${round + 1}, ${workers} workers`,
      faults: report.faults,
    })),
  )
  writeResult('workers', options, { results, spread })
  return isWhole ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      workers: { type: 'string', default: '2' },
      'log-level': { type: 'string', default: 'info' },
    },
  })
  if (values.database === undefined) {
    throw new UsageError('--database is needed: the embedded database is for one process')
  }
  return {
    ...readRunOptions(values),
    workers: Math.round(numberIn(values.workers, { name: 'workers', from: 2, to: 8 })),
    logLevel: values['log-level'],
  }
}

/** One worker and several, each with its own database and the same upstream. */
async function startCrews(options: Options): Promise<WorkerSet[]> {
  const upstreamPort = await startMockUpstream(mockLifetimeS)
  const { databaseServer, logLevel, settings } = options
  const crews: WorkerSet[] = []
  for (const workers of [1, options.workers]) {
    const gateway = await startGateway({
      upstreamPort,
      upstreamApi: 'chat',
      databaseServer,
      workers,
      logLevel,
      settings,
    })
    crews.push({ workers, gateway })
  }
  return crews
}

function makeJob(measure: MeasureName, gateway: Gateway, windowMs: number): LoadJob {
  const isFlat = measure === 'events unpaced'
  const plan = { ...barePlan, ...(isFlat ? { tokens: flatTokens } : { tokenBytes: responseBytes }) }
  return {
    ...streamedResponses(gateway),
    stream: isFlat,
    mode: 'repeat',
    connections: connectionsOf[measure],
    plans: [plan],
    rampMs: 100,
    windowStartMs: settleMs,
    windowMs,
    deadlineMs: windowMs + slackMs,
  }
}

/** Idle streams on many connections, counted per worker while open. */
async function measureSpread(crews: readonly WorkerSet[], rounds: number): Promise<SpreadResult[]> {
  const results: SpreadResult[] = []
  for (let round = 0; round < rounds; round++) {
    for (const { workers, gateway } of crews.filter((crew) => crew.workers > 1)) {
      // Idle upstream connections are closed by then.
      await Bun.sleep(5_000)
      const before = workerDescriptors(gateway.pid)
      const job = crowdJob(gateway, spreadCrowd)
      const running = runLoad(job)
      await Bun.sleep(job.windowStartMs + job.windowMs / 2)
      const open = workerDescriptors(gateway.pid)
      // A stream uses two sockets: client and upstream.
      const connections = open.map((count, at) => Math.round((count - (before[at] ?? 0)) / 2))
      results.push({ round, workers, connections, report: await running })
    }
  }
  return results
}
