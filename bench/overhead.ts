import { parseArgs } from 'node:util'
import { runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob } from './support/load-job.ts'
import {
  numberIn,
  oneOf,
  type RunOptions,
  readRunOptions,
  readSettings,
  runFlags,
  settingsOption,
} from './support/options.ts'
import {
  formatMeasure,
  formatResults,
  type Measure,
  type Result,
} from './support/overhead-results.ts'
import { type Pair, pairNames, quickPairs, readPairs } from './support/pairs.ts'
import { type Peer, peerOption, readPeers, startPeers } from './support/peers.ts'
import { barePlan, type Plan } from './support/plan.ts'
import { treeMemoryBytes } from './support/process-tree.ts'
import { printFaults, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import {
  jobFor,
  startFloorTarget,
  startGatewayTargets,
  startPlainTargets,
  type Target,
} from './support/targets.ts'
import { fullWarmUp, quickWarmUp, type WarmUpPace, warmUp } from './support/warm-up.ts'

export const summary =
  'Latency and CPU that Sluice adds to a request, compared with a direct connection, nginx and other gateways.'
export const usage =
  `[--quick] [--pair ${pairNames.join(',')}] [--part all|burst] [--peer portkey=FOLDER] ` +
  '[--peer NAME=http://127.0.0.1:PORT] [--upstream-port N] [--database postgres://…] [--store] ' +
  '[--log-level info] [--processes 1] [--set key=value]… [--variant key=value]… [--json FILE]'

type Pace = {
  readonly rounds: number
  readonly clients: readonly number[]
  /** New connections with a stream each, all at once. */
  readonly burst: number
  /** Of a run of bursts only: one takes 100 ms more or less than the next. */
  readonly burstRounds: number
  readonly warmUp: WarmUpPace
  readonly settleMs: number
  readonly windowMs: number
}

const fullPace: Pace = {
  rounds: 5,
  clients: [1, 8, 64],
  burst: 2_000,
  burstRounds: 15,
  warmUp: fullWarmUp,
  settleMs: 300,
  windowMs: 1_500,
}
const quickPace: Pace = {
  rounds: 2,
  clients: [1, 8],
  burst: 500,
  burstRounds: 3,
  warmUp: quickWarmUp,
  settleMs: 150,
  windowMs: 500,
}

/** Requests that store their response, and lists of models; of clients that speak Responses. */
const storedClients: readonly number[] = [8, 64]
const modelClients: readonly number[] = [8, 64]
/** The second token of a burst, so that all of its streams are open at once. */
const burstTokensPerSecond = 0.5
/** The lengths of responses that are not streamed; the longer ones only with 8 clients. */
const shortTokens = 20
const longTokens: readonly number[] = [200, 1_000]
const tokenBytes = 8
const slackMs = 15_000
const mockLifetimeS = 3_600
const processesMax = 8
/** Maximum rate of streamed responses of all clients together; leaves the machine idle time. */
const streamsPerSecond = 600

type Options = RunOptions & {
  readonly pairs: readonly Pair[]
  readonly part: 'all' | 'burst'
  readonly peers: readonly Peer[]
  readonly upstreamPort: number
  readonly store: boolean
  readonly logLevel: string
  readonly processes: number
  readonly variant: readonly string[]
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const pace = options.quick ? quickPace : fullPace
  const upstreamPort = await startMockUpstream(mockLifetimeS, options.upstreamPort)
  const plain = await startPlainTargets({ ...options, upstreamPort })
  const floor = await startFloorTarget({ ...options, upstreamPort })
  const ours: Target[][] = []
  while (ours.length < options.processes) {
    ours.push(await startGatewayTargets({ ...options, upstreamPort }))
  }
  const peers = await startPeers(options.peers, upstreamPort)
  for (const target of [floor, ...ours, peers].flat()) await warmUpTarget(target, pace, options)
  const before = memoryMiB(ours.flat())
  const targetsOf = (round: number) => [plain, floor, ours[round % ours.length] ?? [], peers].flat()
  const results = await runRounds(targetsOf, pace, options)
  const after = memoryMiB(ours.flat())

  const names = options.peers.map(({ name }) => name)
  console.log(`\n${formatResults(results, options.pairs, names)}`)
  console.log(`\ngateway memory, MiB: ${before} after the warm-up, ${after} at the end`)
  const isWhole = printFaults(
    results.map(({ measure, target, protocol, report }) => ({
      where: `${target}, ${protocol}, ${formatMeasure(measure)}`,
      faults: report.faults,
    })),
  )
  writeResult('overhead', options, { memoryMiB: [before, after], results })
  return isWhole ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      pair: { type: 'string' },
      part: { type: 'string', default: 'all' },
      peer: peerOption,
      'upstream-port': { type: 'string', default: '0' },
      store: { type: 'boolean', default: false },
      'log-level': { type: 'string', default: 'info' },
      processes: { type: 'string', default: '1' },
      variant: settingsOption,
    },
  })
  const port = { name: 'upstream-port', from: 0, to: 65_535 }
  return {
    ...readRunOptions(values),
    pairs: readPairs(values.pair, values.quick ? quickPairs : pairNames),
    part: oneOf(values.part, { name: 'part', words: ['all', 'burst'] }),
    peers: readPeers(values.peer),
    upstreamPort: numberIn(values['upstream-port'], port),
    store: values.store,
    logLevel: values['log-level'],
    processes: numberIn(values.processes, { name: 'processes', from: 1, to: processesMax }),
    variant: readSettings(values.variant, 'variant'),
  }
}

/** Compilation is excluded from the measurement. */
async function warmUpTarget(target: Target, pace: Pace, options: Options): Promise<void> {
  const jobs = measuresOf(pace)
    .filter((measure) => measure.clients === 8 && measure.tokens <= shortTokens)
    .filter((measure) => isMeasured(measure, target))
    .map((measure) => makeJob(measure, target, { pace, store: options.store }))
  console.log(`${target.name}, ${target.protocol}: ${await warmUp(jobs, pace.warmUp)}`)
}

/** Interleaves the targets of a round: one measure on all of them, then the next. */
async function runRounds(
  targetsOf: (round: number) => readonly Target[],
  pace: Pace,
  options: Options,
): Promise<Result[]> {
  const results: Result[] = []
  const isAll = options.part === 'all'
  const measures = measuresOf(pace).filter(({ kind }) => isAll || kind === 'burst')
  const rounds = isAll ? pace.rounds : pace.burstRounds
  for (let round = 0; round < rounds; round++) {
    for (const measure of measures) {
      for (const target of inTurn(targetsOf(round), round)) {
        if (!isMeasured(measure, target)) continue
        const report = await runLoad(makeJob(measure, target, { pace, store: options.store }))
        const { name, protocol, upstream } = target
        results.push({ round, measure, target: name, protocol, upstream, report })
      }
    }
    console.log(`round ${round + 1} of ${rounds} is done`)
  }
  return results
}

function measuresOf({ clients, burst }: Pace): Measure[] {
  const kinds = ['streamed', 'whole'] as const
  return [
    ...kinds.flatMap((kind) =>
      clients.map((howMany) => ({ kind, tokens: tokensOf(kind), clients: howMany })),
    ),
    ...longTokens.map((tokens) => ({ kind: 'whole' as const, tokens, clients: 8 })),
    ...storedClients.map((howMany) => ({
      kind: 'stored' as const,
      tokens: shortTokens,
      clients: howMany,
    })),
    ...modelClients.map((howMany) => ({ kind: 'models' as const, tokens: 0, clients: howMany })),
    { kind: 'burst', tokens: tokensOf('burst'), clients: burst },
  ]
}

/** Peers store nothing, and the floor lists no models. */
function isMeasured({ kind }: Measure, { name, protocol }: Target): boolean {
  if (kind !== 'stored' && kind !== 'models') return true
  if (protocol === 'messages') return false
  return (
    ['direct', 'nginx', 'Sluice', 'variant'].includes(name) ||
    (name === 'floor' && kind === 'stored')
  )
}

/** The first token of a stream is immediate; the second proves streaming. */
function tokensOf(kind: Measure['kind']): number {
  return kind === 'streamed' || kind === 'burst' ? 2 : shortTokens
}

/** Consecutive requests on each connection. */
function makeJob(
  { kind, tokens, clients }: Measure,
  target: Target,
  how: { readonly pace: Pace; readonly store: boolean },
): LoadJob {
  const { settleMs, windowMs } = how.pace
  const isBurst = kind === 'burst'
  const pacedRate = isBurst ? burstTokensPerSecond : streamsPerSecond / clients
  const isStreamed = isBurst || kind === 'streamed'
  const tokensPerSecond = isStreamed ? pacedRate : 0
  const plan: Plan = { ...barePlan, tokens: Math.max(1, tokens), tokenBytes, tokensPerSecond }
  return {
    ...jobFor(target),
    stream: isStreamed,
    store: how.store || kind === 'stored',
    listsModels: kind === 'models',
    connections: clients,
    mode: isBurst ? 'once' : 'repeat',
    rampMs: 0,
    windowStartMs: isBurst ? 0 : settleMs,
    windowMs,
    plans: [plan],
    deadlineMs: settleMs + windowMs + slackMs,
  }
}

/** Each process tree once; a gateway serves several pairs. */
function memoryMiB(targets: readonly Target[]): string {
  return [...new Set(targets.flatMap(({ pid }) => pid ?? []))]
    .map((pid) => (treeMemoryBytes(pid) / 2 ** 20).toFixed(0))
    .join(' and ')
}
