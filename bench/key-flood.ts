import { parseArgs } from 'node:util'
import { isRecord } from '#lib/json.ts'
import { type CallerName, callers, type FloodJob, type FloodReport } from './support/flood-job.ts'
import {
  type FloodProbeResult,
  formatFloodProbes,
  formatRates,
  type RateResult,
} from './support/flood-results.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { runClient, startMockUpstream } from './support/load.ts'
import { numberIn, type RunOptions, readRunOptions, runFlags } from './support/options.ts'
import { modelName } from './support/plan.ts'
import { probeEveryMs, startProbe } from './support/probe.ts'
import { faultCount, formatSamples, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import { type Faults, noFaults } from './support/stream-check.ts'

export const summary =
  'Rejected credentials per core and second, and latency of valid ones meanwhile.'
export const usage =
  '[--quick] [--connections 64] [--database postgres://…] [--set key=value]… [--json FILE]'

/** Durations. Windows are long compared with the 10 ms resolution of CPU time. */
type Pace = {
  readonly rounds: number
  readonly warmUpMs: number
  readonly windowMs: number
  readonly besideMs: number
}

const fullPace: Pace = { rounds: 5, warmUpMs: 500, windowMs: 2_500, besideMs: 4_000 }
const quickPace: Pace = { rounds: 2, warmUpMs: 200, windowMs: 800, besideMs: 1_500 }
const firstPace: Pace = { rounds: 1, warmUpMs: 0, windowMs: 800, besideMs: 0 }

/** Floods beside which valid requests are measured; the first is none. */
const floods = [null, 'wrong checksum', 'wrong signature', 'new unknown key each time'] as const

/** Interval of new keys; each is used for one probe. */
const newKeyEveryMs = 100
/** Maximum keys per user. */
const keysPerUser = 100
const mockLifetimeS = 900
/** Longer than the start of the flood program. */
const programStartMs = 400

type Options = RunOptions & {
  readonly connections: number
}

type Target = Gateway & { readonly newKeys: string[]; readonly apiKey: string }

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const pace = options.quick ? quickPace : fullPace
  const target = await startTarget(options, pace)
  for (const caller of callers) await flood(target, { caller, pace: firstPace, options })
  const rates: RateResult[] = []
  const beside: FloodProbeResult[] = []
  const faults: Faults[] = []
  for (let round = 0; round < pace.rounds; round++) {
    for (const caller of inTurn(callers, round)) {
      const report = await flood(target, { caller, pace, options })
      rates.push({ round, caller, report })
      faults.push(report.faults)
    }
    for (const name of inTurn(floods, round)) {
      const result = await lookBeside(target, { name, pace, options, faults })
      beside.push({ round, ...result })
    }
    console.log(`round ${round + 1} of ${pace.rounds} is done`)
  }
  console.log(`\n${formatRates(rates)}\n\n${formatFloodProbes(beside)}`)
  const unclean = faults.filter((found) => faultCount(found) > 0)
  for (const found of unclean) console.log(`${found.failed} wrong responses${formatSamples(found)}`)
  writeResult('key-flood', options, { rates, beside })
  return unclean.length === 0 ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      connections: { type: 'string', default: '64' },
    },
  })
  return {
    ...readRunOptions(values),
    connections: numberIn(values.connections, { name: 'connections', from: 1, to: 2_000 }),
  }
}

/** A gateway with the required number of keys. */
async function startTarget(options: Options, pace: Pace): Promise<Target> {
  const { databaseServer, settings } = options
  const gateway = await startGateway({
    upstreamPort: await startMockUpstream(mockLifetimeS),
    upstreamApi: 'chat',
    databaseServer,
    settings,
  })
  const [apiKey = ''] = await makeKeys(gateway.port, gateway.bearer, 1)
  const probes = Math.ceil(pace.besideMs / newKeyEveryMs) + 1
  const newKeys: string[] = []
  for (let user = 0; newKeys.length < probes * floods.length * pace.rounds; user++) {
    const bearer = await gateway.token(`bench-${user}`, ['users'])
    newKeys.push(...(await makeKeys(gateway.port, bearer, keysPerUser)))
  }
  return { ...gateway, apiKey, newKeys }
}

async function makeKeys(port: number, bearer: string, count: number): Promise<string[]> {
  const keys: string[] = []
  while (keys.length < count) {
    const httpResponse = await fetch(`http://127.0.0.1:${port}/v1/api-keys`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${bearer}` },
      body: JSON.stringify({ name: 'bench' }),
    })
    const made: unknown = await httpResponse.json()
    if (!isRecord(made) || typeof made['key'] !== 'string') {
      throw new Error(`no key was made: ${JSON.stringify(made)}`)
    }
    keys.push(made['key'])
  }
  return keys
}

type FloodOptions = {
  readonly caller: CallerName
  readonly pace: Pick<Pace, 'warmUpMs' | 'windowMs'>
  readonly options: Options
}

function flood(target: Target, { caller, pace, options }: FloodOptions): Promise<FloodReport> {
  const { port, pid, bearer, apiKey } = target
  const job: FloodJob = {
    port,
    bearer,
    apiKey,
    caller,
    measurePid: pid,
    connections: options.connections,
    windowStartMs: pace.warmUpMs,
    windowMs: pace.windowMs,
  }
  return runClient<FloodReport>('flood-client.ts', job)
}

/** Probes with valid credentials, sent from this process while another floods. */
async function lookBeside(
  target: Target,
  look: {
    readonly name: CallerName | null
    readonly pace: Pace
    readonly options: Options
    /** Collects failures. */
    readonly faults: Faults[]
  },
): Promise<Omit<FloodProbeResult, 'round'>> {
  const { pace, options, faults, name } = look
  const warmUpMs = Math.max(pace.warmUpMs, programStartMs)
  // The flood starts before the probes and ends after them.
  const windowMs = pace.besideMs + 2 * programStartMs
  const flooding =
    name === null ? null : flood(target, { caller: name, options, pace: { warmUpMs, windowMs } })
  await Bun.sleep(warmUpMs + programStartMs)
  const url = `http://127.0.0.1:${target.port}/v1/models/${modelName}`
  const probeFaults = noFaults()
  faults.push(probeFaults)
  const probe = (everyMs: number, headers: () => Record<string, string>) =>
    startProbe({ url, everyMs, headers, faults: probeFaults })
  const probes = [
    probe(probeEveryMs, () => ({ Authorization: `Bearer ${target.bearer}` })),
    probe(probeEveryMs, () => ({ 'X-Api-Key': target.apiKey })),
    probe(newKeyEveryMs, () => ({ 'X-Api-Key': target.newKeys.pop() ?? target.apiKey })),
  ] as const
  await Bun.sleep(pace.besideMs)
  const [token, key, newKey] = await Promise.all([
    probes[0].end(),
    probes[1].end(),
    probes[2].end(),
  ])
  const report = await flooding
  if (report !== null) faults.push(report.faults)
  return {
    flood: name,
    responseMs: { 'known token': token, 'known key': key, 'key not seen before': newKey },
    report,
  }
}
