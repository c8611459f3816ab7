import { parseArgs } from 'node:util'
import { startGateway } from './support/gateway.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob } from './support/load-job.ts'
import type { Protocol } from './support/mock-frames.ts'
import { startNginx } from './support/nginx.ts'
import { oneOf } from './support/options.ts'
import {
  formatResults,
  type MeasureName,
  type Result,
  type TargetName,
} from './support/overhead-results.ts'
import type { Plan } from './support/plan.ts'
import { treeMemoryBytes } from './support/process-tree.ts'
import { formatFaults, formatSamples, isClean, writeResult } from './support/report.ts'

export const question =
  'What does Sluice add to a request in time and CPU, next to no proxy at all and to nginx doing ' +
  'the same work in the same run?'
export const usage =
  '[--quick] [--upstream-api chat|responses|both] [--database postgres://…] ' +
  '[--store] [--log-level info] [--json FILE]'

/** How long things take. A window is long against the 10 ms in which CPU time is counted. */
type Pace = {
  readonly rounds: number
  readonly warmUpMs: number
  readonly requestWindowMs: number
  readonly rampMs: number
  readonly settleMs: number
  readonly streamWindowMs: number
}

const fullPace: Pace = {
  rounds: 5,
  warmUpMs: 500,
  requestWindowMs: 2_000,
  rampMs: 500,
  settleMs: 500,
  streamWindowMs: 4_000,
}
const quickPace: Pace = {
  rounds: 2,
  warmUpMs: 300,
  requestWindowMs: 700,
  rampMs: 400,
  settleMs: 400,
  streamWindowMs: 2_500,
}
const firstPace: Pace = {
  rounds: 1,
  warmUpMs: 0,
  requestWindowMs: 500,
  rampMs: 300,
  settleMs: 0,
  streamWindowMs: 1_500,
}

const streamCount = 400
const tokensPerSecond = 50
const promptBytes = 1024
const answerBytes = 1024
const lateMs = 250
const slackMs = 15_000
const mockLifetimeS = 900

type Target = {
  readonly name: TargetName
  readonly upstreamApi: Protocol
  /** What the load client speaks to it. */
  readonly protocol: Protocol
  readonly port: number
  readonly bearer: string | null
  readonly pid: number | null
  readonly store: boolean
}

type Options = {
  readonly quick: boolean
  readonly upstreamApis: readonly Protocol[]
  readonly store: boolean
  readonly databaseUrl: string | undefined
  readonly logLevel: string
  readonly jsonFile: string | undefined
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const targets = await startTargets(options)
  const gateways = targets.filter(({ name }) => name === 'Sluice')
  // Code that is still being compiled costs more than it will; that is not what we ask about.
  await runRound(gateways, { round: -1, pace: firstPace, names: measuresOf(options) })
  const before = memoryMiB(gateways)
  const results = await runRounds(targets, options)
  const after = memoryMiB(gateways)

  console.log(`\n${formatResults(results)}`)
  if (!targets.some(({ name }) => name === 'nginx')) {
    console.log('\nnginx is not installed here: its columns are empty, and there are no ratios')
  }
  console.log(`\nmemory of the gateway, MiB: ${before} after the warm-up, ${after} at the end`)
  const unclean = results.filter(({ report }) => !isClean(report))
  for (const { measure, target, report } of unclean) {
    const { faults } = report
    console.log(`${target}, ${measure}: ${formatFaults(faults)}${formatSamples(faults)}`)
  }
  if (options.jsonFile !== undefined) {
    writeResult(options.jsonFile, {
      bench: 'overhead',
      options,
      memoryMiB: [before, after],
      results,
    })
  }
  return unclean.length === 0 ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      'upstream-api': { type: 'string' },
      store: { type: 'boolean', default: false },
      database: { type: 'string' },
      'log-level': { type: 'string', default: 'info' },
      json: { type: 'string' },
    },
  })
  const api = oneOf(values['upstream-api'] ?? (values.quick ? 'chat' : 'both'), {
    name: 'upstream-api',
    words: ['chat', 'responses', 'both'],
  })
  return {
    quick: values.quick,
    upstreamApis: api === 'both' ? ['chat', 'responses'] : [api],
    store: values.store,
    databaseUrl: values.database,
    logLevel: values['log-level'],
    jsonFile: values.json,
  }
}

/** Direct, nginx where it is installed, and one gateway for each protocol of the upstream. */
async function startTargets(options: Options): Promise<Target[]> {
  const upstreamPort = await startMockUpstream(mockLifetimeS)
  const nginx = await startNginx(upstreamPort)
  const targets: Target[] = []
  for (const upstreamApi of options.upstreamApis) {
    const plain = { upstreamApi, protocol: upstreamApi, bearer: null, store: false }
    targets.push({ ...plain, name: 'direct', port: upstreamPort, pid: null })
    if (nginx !== undefined) targets.push({ ...plain, name: 'nginx', ...nginx })
    const { databaseUrl, logLevel } = options
    const gateway = await startGateway({ upstreamPort, upstreamApi, databaseUrl, logLevel })
    targets.push({
      name: 'Sluice',
      upstreamApi,
      protocol: 'responses',
      store: options.store,
      ...gateway,
    })
  }
  return targets
}

/**
 * All but the streams in step is asked for the first protocol of the upstream only, and a quick run
 * leaves out what no budget names.
 */
function measuresOf(options: Options): (target: Target) => MeasureName[] {
  const [mainApi] = options.upstreamApis
  return ({ name, upstreamApi }) => {
    if (upstreamApi !== mainApi) return name === 'direct' ? [] : ['400 streams in step']
    const requests: MeasureName[] = [
      'first token, 1 client',
      'first token, 8 clients',
      'whole answer, 1 client',
      'whole answer, 8 clients',
    ]
    if (name === 'direct') return options.quick ? requests : [...requests, '400 streams in step']
    const streams: MeasureName[] = ['400 streams in step', '400 streams spread']
    return [...requests, ...streams.slice(0, options.quick ? 1 : 2)]
  }
}

async function runRounds(targets: readonly Target[], options: Options): Promise<Result[]> {
  const pace = options.quick ? quickPace : fullPace
  const results: Result[] = []
  for (let round = 0; round < pace.rounds; round++) {
    // Who comes first changes with the round, so that no one always follows the same.
    const turn = round % targets.length
    const order = [...targets.slice(turn), ...targets.slice(0, turn)]
    results.push(...(await runRound(order, { round, pace, names: measuresOf(options) })))
    console.log(`round ${round + 1} of ${pace.rounds} is done`)
  }
  return results
}

async function runRound(
  targets: readonly Target[],
  options: { round: number; pace: Pace; names: (target: Target) => MeasureName[] },
): Promise<Result[]> {
  const results: Result[] = []
  for (const target of targets) {
    for (const measure of options.names(target)) {
      const report = await runLoad(makeJob(measure, target, options.pace))
      const { name, upstreamApi } = target
      results.push({ round: options.round, measure, target: name, upstreamApi, report })
    }
  }
  return results
}

function makeJob(measure: MeasureName, target: Target, pace: Pace): LoadJob {
  switch (measure) {
    case 'first token, 1 client':
      return requestJob(target, pace, {
        connections: 1,
        plan: { ...twoTokens, tokensPerSecond: 500 },
      })
    case 'first token, 8 clients':
      return requestJob(target, pace, {
        connections: 8,
        plan: { ...twoTokens, tokensPerSecond: 100 },
      })
    case 'whole answer, 1 client':
      return requestJob(target, pace, { connections: 1, plan: oneBigToken })
    case 'whole answer, 8 clients':
      return requestJob(target, pace, { connections: 8, plan: oneBigToken })
    case '400 streams in step':
      return streamJob(target, pace, 1000 / tokensPerSecond)
    case '400 streams spread':
      return streamJob(target, pace, 0)
  }
}

const barePlan = { tokenBytes: 0, stepMs: 0, pauseSecondsMax: 0, lastsMs: 0, seed: 0 }
/** The first token comes at once, the second shows that the stream is a stream. */
const twoTokens = { ...barePlan, tokens: 2 }
/** An answer that is there at once, whole. */
const oneBigToken: Plan = { ...barePlan, tokens: 1, tokenBytes: answerBytes, tokensPerSecond: 0 }

/** Request after request on each connection; streamed when the plan has a pace. */
function requestJob(
  target: Target,
  pace: Pace,
  load: { connections: number; plan: Plan },
): LoadJob {
  return {
    ...jobFor(target),
    stream: load.plan.tokensPerSecond > 0,
    connections: load.connections,
    mode: 'repeat',
    rampMs: 0,
    windowStartMs: pace.warmUpMs,
    windowMs: pace.requestWindowMs,
    plans: [load.plan],
    deadlineMs: pace.warmUpMs + pace.requestWindowMs + slackMs,
  }
}

/** All streams are open during the whole window, and end soon after it. */
function streamJob(target: Target, pace: Pace, stepMs: number): LoadJob {
  const windowStartMs = pace.rampMs + pace.settleMs
  const lastsMs = windowStartMs + pace.streamWindowMs + 200
  const tokens = Math.ceil((lastsMs / 1000) * tokensPerSecond)
  return {
    ...jobFor(target),
    stream: true,
    connections: streamCount,
    mode: 'once',
    rampMs: pace.rampMs,
    windowStartMs,
    windowMs: pace.streamWindowMs,
    plans: [{ ...barePlan, tokens, tokensPerSecond, stepMs }],
    deadlineMs: lastsMs + slackMs,
  }
}

function jobFor(target: Target) {
  const { port, protocol, bearer, pid, store } = target
  return { port, protocol, bearer, store, measurePid: pid, promptBytes, lateMs, progressMs: 0 }
}

function memoryMiB(targets: readonly Target[]): string {
  return targets
    .flatMap(({ pid }) => (pid === null ? [] : [treeMemoryBytes(pid) / 2 ** 20]))
    .map((mebibytes) => mebibytes.toFixed(0))
    .join(' and ')
}
