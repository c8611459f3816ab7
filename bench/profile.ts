import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type ThreadGroup, threadGroupOf } from './support/cpu-use.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob, LoadReport } from './support/load-job.ts'
import { oneOf, readRunOptions, runFlags, UsageError } from './support/options.ts'
import { pacedJob, slackMs, tokensPerSecond } from './support/paced-streams.ts'
import { formatPair, type Pair, pairNames, quickPairs, readPairs } from './support/pairs.ts'
import { barePlan } from './support/plan.ts'
import { treePids } from './support/process-tree.ts'
import { writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import { formatTable, median } from './support/table.ts'
import {
  jobFor,
  startFloorTarget,
  startGatewayTargets,
  startPlainTargets,
  type Target,
} from './support/targets.ts'
import { fullWarmUp, quickWarmUp, warmUp } from './support/warm-up.ts'

export const summary =
  'Where the CPU time of an event, a request and a new stream is spent: kernel, runtime, our code (needs perf).'
export const usage =
  `[--quick] [--pair ${pairNames.join(',')}] [--part all|events|requests] [--database postgres://…] [--set key=value]… ` +
  '[--json FILE]'

/** What a sample was taken in. */
type Layer = 'kernel' | 'native' | 'compiled' | 'helpers'

const layers: readonly { readonly layer: Layer; readonly title: string }[] = [
  { layer: 'kernel', title: 'kernel' },
  { layer: 'native', title: 'native code: of the runtime, or of nginx' },
  { layer: 'compiled', title: 'compiled JavaScript' },
  { layer: 'helpers', title: 'threads of compilers and collector' },
]

type Work = {
  readonly part: 'events' | 'requests'
  readonly title: string
  readonly warmUp: (target: Target) => LoadJob
  readonly job: (target: Target) => LoadJob
  readonly units: (report: LoadReport) => number
  /** Only Sluice stores responses. */
  readonly isStored?: true
}

type Profile = Readonly<Record<Layer, number>>

const rounds = { quick: 1, full: 3 }
const windowMs = 4_000
const settleMs = 1_000
const streams = 400
const connections = 64
/** Starting `perf` takes a moment, and samples after the window would count the end of the streams. */
const perfMarginMs = 500
const samplesPerSecond = 2_500
const mockLifetimeS = 3_600

const base = (target: Target) => ({
  ...jobFor(target),
  store: false,
  rampMs: 0,
  windowStartMs: settleMs,
  windowMs,
  deadlineMs: settleMs + windowMs + slackMs,
  progressMs: 100,
})

/** Consecutive responses of so many tokens, as fast as possible. */
const requests = (target: Target, { stream, tokens }: { stream: boolean; tokens: number }) => ({
  ...base(target),
  stream,
  connections,
  mode: 'repeat' as const,
  plans: [{ ...barePlan, tokens, tokenBytes: 8 }],
})

const pacedStreams = (target: Target): LoadJob =>
  pacedJob(streams, target, { pace: { settleMs, windowMs }, isSpread: false })

/** Streams of a second, repeated: a paced stream lasts for its window. */
const repeatedStreams = (target: Target): LoadJob => ({
  ...pacedStreams(target),
  connections: 100,
  mode: 'repeat',
  plans: [{ ...barePlan, tokens: tokensPerSecond, tokensPerSecond }],
})

const works: readonly Work[] = [
  {
    part: 'events',
    title: `event, ${streams} streams at ${tokensPerSecond}/s`,
    warmUp: repeatedStreams,
    job: pacedStreams,
    units: ({ window }) => window.tokens,
  },
  {
    part: 'events',
    title: `event of a stored stream, ${streams} at ${tokensPerSecond}/s`,
    warmUp: (target) => ({ ...repeatedStreams(target), store: true }),
    job: (target) => ({ ...pacedStreams(target), store: true }),
    units: ({ window }) => window.tokens,
    isStored: true,
  },
  {
    part: 'requests',
    title: `request, not streamed, 20 tokens, ${connections} clients`,
    warmUp: (target) => requests(target, { stream: false, tokens: 20 }),
    job: (target) => requests(target, { stream: false, tokens: 20 }),
    units: ({ window }) => window.requests,
  },
  {
    part: 'requests',
    title: `request, streamed, 2 tokens, ${connections} clients`,
    warmUp: (target) => requests(target, { stream: true, tokens: 2 }),
    job: (target) => requests(target, { stream: true, tokens: 2 }),
    units: ({ window }) => window.requests,
  },
]

/** Whether it can be measured with a target. */
function suits({ isStored }: Work, { name, protocol }: Target): boolean {
  return isStored !== true || (name === 'Sluice' && protocol === 'responses')
}

type Result = {
  readonly round: number
  readonly work: string
  readonly target: string
  readonly pair: string
  /** Microseconds per unit. */
  readonly profile: Profile
}

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      pair: { type: 'string' },
      part: { type: 'string', default: 'all' },
    },
  })
  const parts = ['all', 'events', 'requests'] as const
  const part = oneOf(values.part, { name: 'part', words: parts })
  const chosen = works.filter((work) => part === 'all' || work.part === part)
  const options = readRunOptions(values)
  const pairs = readPairs(values.pair, quickPairs)
  if (Bun.which('perf') === null) throw new UsageError('perf is not installed (linux-perf)')
  const upstreamPort = await startMockUpstream(mockLifetimeS)
  // A stored stream ends with its client here, or it would run during the next load.
  const settings = [...options.settings, 'responses.abandon_ms=0']
  const started = { ...options, settings, pairs, upstreamPort, logLevel: 'info' }
  const proxies = (await startPlainTargets(started)).filter(({ pid }) => pid !== null)
  const floor = await startFloorTarget(started)
  const gateways = await startGatewayTargets(started)
  const targets = [...proxies, ...floor, ...gateways]
  const pace = options.quick ? quickWarmUp : fullWarmUp
  for (const target of [...floor, ...gateways]) {
    const suitable = chosen.filter((work) => suits(work, target))
    const jobs = suitable.map((work) => work.warmUp(target))
    console.log(`${target.name}, ${target.protocol}: ${await warmUp(jobs, pace)}`)
  }
  const results: Result[] = []
  const roundsMax = options.quick ? rounds.quick : rounds.full
  for (let round = 0; round < roundsMax; round++) {
    for (const work of chosen) {
      const suitable = targets.filter((target) => suits(work, target))
      for (const target of inTurn(suitable, round)) {
        const pair = `${target.protocol} ${target.upstream}`
        const profile = await measure(work, target)
        results.push({ round, work: work.title, target: target.name, pair, profile })
      }
    }
    console.log(`round ${round + 1} of ${roundsMax} is done`)
  }
  const tables = pairs.flatMap((pair) =>
    chosen
      .filter(({ isStored }) => isStored !== true || pair.client === 'responses')
      .map((work) => formatWork(pair, work, results)),
  )
  console.log(`\n${tables.join('\n\n')}`)
  writeResult('profile', options, { results })
  return 0
}

/** The CPU time of the window, divided as the samples of the process tree are. */
async function measure(work: Work, target: Target): Promise<Profile> {
  if (target.pid === null) throw new Error(`${target.name} has no process`)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-profile-'))
  const file = join(folder, 'perf.data')
  const pids = treePids(target.pid).join(',')
  const recordings: Bun.Subprocess[] = []
  const report = await runLoad(work.job(target), ({ inWindow }) => {
    if (!inWindow || recordings.length > 0) return
    const seconds = (windowMs - perfMarginMs) / 1_000
    const what = ['-F', String(samplesPerSecond), '-p', pids, '-o', file]
    recordings.push(
      Bun.spawn(['perf', 'record', ...what, '--', 'sleep', String(seconds)], {
        stdio: ['ignore', 'ignore', 'ignore'],
      }),
    )
  })
  await recordings[0]?.exited
  const shares = readShares(file)
  rmSync(folder, { recursive: true })
  const microseconds = ((report.window.cpu?.totalMs ?? 0) * 1_000) / work.units(report)
  return scaled(shares, microseconds)
}

/** The parts of all samples, which add up to 1. */
function readShares(file: string): Profile {
  const { stdout } = Bun.spawnSync(
    ['perf', 'report', '-i', file, '--stdio', '--sort', 'comm,dso', '-t', ';'],
    { stderr: 'ignore' },
  )
  const shares = { kernel: 0, native: 0, compiled: 0, helpers: 0 }
  let all = 0
  for (const line of stdout.toString().split('\n')) {
    const [percent = '', thread = '', object = ''] = line.split(';').map((cell) => cell.trim())
    const share = Number.parseFloat(percent)
    if (!/^[\d.]+%$/.test(percent) || Number.isNaN(share)) continue
    shares[layerOf(threadGroupOf(thread), object)] += share
    all += share
  }
  if (all === 0) throw new Error('perf recorded no samples')
  return scaled(shares, 1 / all)
}

function scaled({ kernel, native, compiled, helpers }: Profile, by: number): Profile {
  return {
    kernel: kernel * by,
    native: native * by,
    compiled: compiled * by,
    helpers: helpers * by,
  }
}

/** `object`: the file that the sampled code was loaded from, in brackets if there is none. */
function layerOf(group: ThreadGroup, object: string): Layer {
  if (group === 'JIT' || group === 'GC') return 'helpers'
  if (object.startsWith('[kernel')) return 'kernel'
  return object.startsWith('[JIT]') || object.startsWith('//anon') ? 'compiled' : 'native'
}

function formatWork(pair: Pair, { title }: Work, results: readonly Result[]): string {
  const names = ['nginx', 'floor', 'Sluice']
  const of = (name: string, microseconds: (profile: Profile) => number) => {
    const protocol = name === 'nginx' ? pair.upstream : pair.client
    const values = results
      .filter((result) => result.work === title && result.target === name)
      .filter((result) => result.pair === `${protocol} ${pair.upstream}`)
      .map(({ profile }) => microseconds(profile))
    return values.length === 0 ? Number.NaN : median(values)
  }
  const cell = (value: number) => (Number.isNaN(value) ? '-' : value.toFixed(1))
  const row = (what: string, microseconds: (profile: Profile) => number) => {
    const values = names.map((name) => of(name, microseconds))
    return [what, ...values.map(cell)]
  }
  const total = (profile: Profile) => Object.values(profile).reduce((sum, part) => sum + part, 0)
  const nginx = of('nginx', total)
  const ratio = (what: string, microseconds: (profile: Profile) => number) => {
    const values = names.map((name) => of(name, microseconds) / nginx)
    return [what, ...values.map((value) => (Number.isNaN(value) ? '-' : value.toFixed(2)))]
  }
  return formatTable(
    [`${formatPair(pair)}: CPU per ${title}, µs`, ...names],
    [
      ...layers.map(({ layer, title: what }) => row(what, (profile) => profile[layer])),
      row('together', total),
      ratio('together / nginx', total),
      ratio('without compiled JavaScript / nginx', (profile) => total(profile) - profile.compiled),
    ],
  )
}
