import { parseArgs } from 'node:util'
import { requireDescriptors } from './support/descriptors.ts'
import {
  type EventsResult,
  formatEvents,
  formatLoad,
  type StreamLoad,
} from './support/events-results.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob } from './support/load-job.ts'
import { numberIn, oneOf, type RunOptions, readRunOptions, runFlags } from './support/options.ts'
import { pacedJob, slackMs, streamJob, tokensPerSecond } from './support/paced-streams.ts'
import { type Pair, pairNames, quickPairs, readPairs, storedTarget } from './support/pairs.ts'
import { type Peer, peerOption, readPeers, startPeers } from './support/peers.ts'
import { barePlan } from './support/plan.ts'
import { treeMemoryBytes } from './support/process-tree.ts'
import { printFaults, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import {
  startFloorTarget,
  startGatewayTargets,
  startPlainTargets,
  type Target,
} from './support/targets.ts'
import { fullWarmUp, quickWarmUp, type WarmUpPace, warmUp } from './support/warm-up.ts'

export const summary =
  'CPU per stream event, from one stream to thousands and unpaced, compared with nginx and the floor of the runtime, by thread.'
export const usage =
  `[--quick] [--pair ${pairNames.join(',')}] [--part all|paced|flat] [--streams 1,100,400] ` +
  '[--spread] [--store] [--peer portkey=FOLDER] [--peer NAME=http://127.0.0.1:PORT] ' +
  '[--upstream-port N] [--database postgres://…] [--log-level info] [--set key=value]… [--json FILE]'

type Pace = {
  readonly rounds: number
  readonly paced: readonly number[]
  readonly flat: readonly number[]
  readonly warmUp: WarmUpPace
  /** Pause after the last stream was opened, before the window. */
  readonly settleMs: number
  readonly windowMs: number
}

const fullPace: Pace = {
  rounds: 3,
  paced: [1, 100, 400, 1_000, 4_000],
  flat: [1, 64],
  warmUp: fullWarmUp,
  settleMs: 500,
  windowMs: 4_000,
}
const quickPace: Pace = {
  rounds: 2,
  paced: [100, 400],
  flat: [1],
  warmUp: quickWarmUp,
  settleMs: 200,
  windowMs: 1_000,
}

const streamsMax = 9_500
/** Unpaced responses, one after the other. */
const flatTokens = 5_000
const mockLifetimeS = 7_200

type Options = RunOptions & {
  readonly pairs: readonly Pair[]
  readonly loads: readonly StreamLoad[]
  /** Streams start at any time instead of in step. */
  readonly isSpread: boolean
  /** Each load of Responses streams is measured with stored responses, too. */
  readonly isStoredToo: boolean
  readonly peers: readonly Peer[]
  readonly upstreamPort: number
  readonly logLevel: string
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  requireDescriptors(Math.max(...options.loads.map(({ streams }) => streams)))
  const pace = options.quick ? quickPace : fullPace
  const upstreamPort = await startMockUpstream(mockLifetimeS, options.upstreamPort)
  const plain = await startPlainTargets({ ...options, upstreamPort })
  const floor = await startFloorTarget({ ...options, upstreamPort })
  const peers = await startPeers(options.peers, upstreamPort)
  const gateways = [...floor, ...(await startSluice(options, upstreamPort)), ...peers]
  for (const target of gateways) await warmUpTarget(target, pace, options)
  const proxies = plain.filter(({ name }) => name === 'nginx')
  const results = await runRounds([...proxies, ...gateways], pace, options)

  const peerNames = options.peers.map(({ name }) => name)
  console.log(`\n${formatEvents(results, options.pairs, peerNames)}`)
  const isWhole = printFaults(
    results.map(({ load, target, protocol, report }) => ({
      where: `${target}, ${protocol}, ${formatLoad(load)}`,
      faults: report.faults,
    })),
  )
  writeResult('events', options, { results })
  return isWhole ? 0 : 1
}

/** A stored stream ends with its client here, or it would run during the next load. */
async function startSluice(options: Options, upstreamPort: number): Promise<Target[]> {
  const { isStoredToo } = options
  const settings = [...options.settings, ...(isStoredToo ? ['responses.abandon_ms=0'] : [])]
  const targets = await startGatewayTargets({ ...options, settings, upstreamPort })
  const storing = targets.filter(({ protocol }) => isStoredToo && protocol === 'responses')
  return [...targets, ...storing.map((target) => ({ ...target, name: storedTarget }))]
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      pair: { type: 'string' },
      part: { type: 'string', default: 'all' },
      streams: { type: 'string' },
      spread: { type: 'boolean', default: false },
      store: { type: 'boolean', default: false },
      peer: peerOption,
      'upstream-port': { type: 'string', default: '0' },
      'log-level': { type: 'string', default: 'info' },
    },
  })
  const { paced, flat } = values.quick ? quickPace : fullPace
  const part = oneOf(values.part, { name: 'part', words: ['all', 'paced', 'flat'] })
  const bounds = { name: 'streams', from: 1, to: streamsMax }
  const port = { name: 'upstream-port', from: 0, to: 65_535 }
  const streams = values.streams?.split(',').map((text) => Math.round(numberIn(text, bounds)))
  return {
    ...readRunOptions(values),
    pairs: readPairs(values.pair, values.quick ? quickPairs : pairNames),
    loads: [
      ...(part === 'flat' ? [] : loadsOf(streams ?? paced, tokensPerSecond)),
      ...(part === 'paced' ? [] : loadsOf(part === 'flat' ? (streams ?? flat) : flat, 0)),
    ],
    isSpread: values.spread,
    isStoredToo: values.store,
    peers: readPeers(values.peer),
    upstreamPort: numberIn(values['upstream-port'], port),
    logLevel: values['log-level'],
  }
}

function loadsOf(streams: readonly number[], pace: number): StreamLoad[] {
  return streams.map((howMany) => ({ streams: howMany, tokensPerSecond: pace }))
}

/** Both large and single-event reads, since they take different code paths. */
async function warmUpTarget(target: Target, pace: Pace, options: Options): Promise<void> {
  const paced = pacedJob(100, target, { pace, ...options })
  // A paced stream lasts for its window; warm-up streams are repeated.
  const plans = [{ ...barePlan, tokens: tokensPerSecond, tokensPerSecond }]
  const jobs: LoadJob[] = [flatJob(8, target, pace), { ...paced, mode: 'repeat', plans }]
  const warmed = await warmUp(jobs, pace.warmUp)
  console.log(`${target.name}, ${target.protocol} → ${target.upstream}: ${warmed}`)
}

/** Interleaves targets: one load on all targets, then the next load. */
async function runRounds(
  targets: readonly Target[],
  pace: Pace,
  options: Options,
): Promise<EventsResult[]> {
  const results: EventsResult[] = []
  for (let round = 0; round < pace.rounds; round++) {
    for (const load of options.loads) {
      for (const target of inTurn(targets, round)) {
        const job =
          load.tokensPerSecond === 0
            ? flatJob(load.streams, target, pace)
            : pacedJob(load.streams, target, { pace, ...options })
        const { name, protocol, upstream } = target
        const measured = await measure(job, target.pid)
        results.push({ round, load, target: name, protocol, upstream, ...measured })
      }
      console.log(`round ${round + 1} of ${pace.rounds}: ${formatLoad(load)}`)
    }
  }
  return results
}

/** Memory is sampled in the window, when all streams are open. */
async function measure(job: LoadJob, pid: number | null) {
  const restBytes = pid === null ? 0 : memoryAtRest(pid)
  let openBytes: number | undefined
  const report = await runLoad(job, ({ inWindow }) => {
    if (inWindow && pid !== null) openBytes ??= treeMemoryBytes(pid)
  })
  return { memoryGrowthBytes: (openBytes ?? restBytes) - restBytes, report }
}

const leastMemory = new Map<number, number>()

/** The minimum between two loads, since garbage of the previous load may remain. */
function memoryAtRest(pid: number): number {
  const least = Math.min(treeMemoryBytes(pid), leastMemory.get(pid) ?? Number.POSITIVE_INFINITY)
  leastMemory.set(pid, least)
  return least
}

/** Consecutive unpaced responses. */
function flatJob(streams: number, target: Target, { settleMs, windowMs }: Pace): LoadJob {
  const rampMs = 300
  return {
    ...streamJob(target, streams),
    mode: 'repeat',
    rampMs,
    windowStartMs: rampMs + settleMs,
    windowMs,
    plans: [{ ...barePlan, tokens: flatTokens }],
    deadlineMs: rampMs + settleMs + windowMs + slackMs,
  }
}
