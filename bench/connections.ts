import { parseArgs } from 'node:util'
import { type CrowdSize, crowdJob, runCrowd } from './support/concurrent-streams.ts'
import { formatCrowd, formatDescriptorLimit, isComplete } from './support/connections-results.ts'
import { isCorrect, runDescriptorLimit } from './support/descriptor-limit.ts'
import { requireDescriptors } from './support/descriptors.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import {
  numberIn,
  type RunOptions,
  readRunOptions,
  runFlags,
  UsageError,
} from './support/options.ts'
import {
  countWarnings,
  formatLogLines,
  formatSamples,
  printFaults,
  writeResult,
} from './support/report.ts'

export const summary =
  'Concurrent streams, memory per stream, and behaviour without free file descriptors.'
export const usage =
  '[--quick] [--streams 9500] [--seconds 60] [--workers 1] [--descriptors N] ' +
  '[--database postgres://…] [--log-level info] [--set key=value]… [--json FILE]'

const streamsPerWorkerMax = 9_500
const workersMax = 8
const quick = { streams: 1_000, seconds: 20 }
const mockLifetimeS = 3_600
/** Streams opened per second, about what one core handles. */
const rampMsPerStream = 1
const warmUp: CrowdSize = { streams: 200, tokensPerSecond: 20, rampMs: 500, windowMs: 4_000 }

/** Time after which the idle upstream connections of the warm-up are closed. */
const restMs = 5_000

type Options = RunOptions & {
  readonly streams: number
  readonly seconds: number
  readonly workers: number
  /** Open file limit of the gateway; if set, the benchmark measures behaviour at that limit. */
  readonly descriptors: number | null
  readonly logLevel: string
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  requireDescriptors(Math.ceil(options.streams / options.workers))
  const { databaseServer, descriptors, workers, logLevel, settings } = options
  const gateway = await startGateway({
    upstreamPort: await startMockUpstream(mockLifetimeS),
    upstreamApi: 'chat',
    databaseServer,
    workers,
    logLevel,
    settings,
    ...(descriptors === null ? {} : { openFilesMax: descriptors }),
  })
  return descriptors === null ? openMany(gateway, options) : openTooMany(gateway, options)
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      streams: { type: 'string' },
      seconds: { type: 'string' },
      workers: { type: 'string', default: '1' },
      descriptors: { type: 'string' },
      'log-level': { type: 'string', default: 'info' },
    },
  })
  const whole = (text: string, name: string, from: number, to: number) =>
    Math.round(numberIn(text, { name, from, to }))
  const workers = whole(values.workers, 'workers', 1, workersMax)
  if (workers > 1 && values.database === undefined) {
    throw new UsageError('--workers needs --database: the embedded database is for one process')
  }
  const streams = values.quick ? quick.streams : workers > 1 ? 5_000 * workers : 9_500
  const { descriptors } = values
  return {
    ...readRunOptions(values),
    streams: whole(`${values.streams ?? streams}`, 'streams', 1, streamsPerWorkerMax * workers),
    seconds: whole(`${values.seconds ?? (values.quick ? quick.seconds : 60)}`, 'seconds', 1, 600),
    workers,
    descriptors: descriptors === undefined ? null : whole(descriptors, 'descriptors', 200, 20_000),
    logLevel: values['log-level'],
  }
}

async function openMany(gateway: Gateway, options: Options): Promise<number> {
  const { streams, seconds } = options
  await runLoad(crowdJob(gateway, warmUp))
  await Bun.sleep(restMs)
  const rampMs = streams * rampMsPerStream
  const size = { streams, tokensPerSecond: 1, rampMs, windowMs: seconds * 1000 }
  const result = await runCrowd(gateway, size)
  const logLines = countWarnings(gateway.logFile)
  console.log(`\n${formatCrowd(size, result)}\n\n${formatLogLines(logLines)}`)
  const { report, livezFaults } = result
  console.log(formatSamples(report.faults) + formatSamples(livezFaults))
  writeResult('connections', options, { ...result, logLines })
  return isComplete(size, result) ? 0 : 1
}

async function openTooMany(gateway: Gateway, options: Options): Promise<number> {
  const result = await runDescriptorLimit(gateway)
  console.log(`\n${formatDescriptorLimit(result)}\n\n${formatLogLines(result.logLines)}`)
  printFaults([
    { where: 'twice the capacity', faults: result.beyond.faults },
    { where: 'half of it, afterwards', faults: result.afterwards.faults },
  ])
  writeResult('connections', options, result)
  return isCorrect(result) ? 0 : 1
}
