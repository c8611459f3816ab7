import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Subprocess } from 'bun'
import { startChild } from './support/children.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { runClient, startMockUpstream } from './support/load.ts'
import { numberIn, type RunOptions, readRunOptions, runFlags } from './support/options.ts'
import { readPort } from './support/ready-port.ts'
import { writeResult } from './support/report.ts'
import {
  slotsPerUpstream,
  type TrafficJob,
  type TrafficReport,
  type UpstreamStats,
} from './support/traffic-job.ts'
import {
  type DeathResult,
  formatTraffic,
  missedTargets,
  type PhaseResult,
} from './support/traffic-results.ts'

export const summary =
  'Waits, fairness and use of three upstreams while one of two hundred callers sends ten times the rest.'
export const usage =
  '[--quick] [--callers 200] [--workers 1] [--database postgres://…] [--set key=value]… [--json FILE]'

type Pace = { readonly windowMs: number; readonly warmUpMs: number }
const fullPace: Pace = { windowMs: 60_000, warmUpMs: 5_000 }
const quickPace: Pace = { windowMs: 10_000, warmUpMs: 2_000 }

/** Long against the few milliseconds in which the gateway replaces a call. */
const serviceMs = 500
/** Of the third upstream. */
const slowFactor = 4
const model = 'traffic'
const mockLifetimeS = 1_800
/** Of the capacity: the calls of all callers but one. */
const restShare = 0.5
/** The calls of the greedy caller, as a multiple of those of all others. */
const greed = 10
/** While nobody is greedy. */
const calmShare = 0.3
const greedyOutstandingMax = 150
const outstandingMax = 20
const seed = 21

type Options = RunOptions & { readonly callers: number; readonly workers: number }

type Site = {
  readonly gateway: Gateway
  readonly bearers: readonly string[]
  readonly upstreams: readonly TrafficUpstream[]
}

type TrafficUpstream = {
  readonly name: string
  readonly serviceMs: number
  readonly port: number
  child: Subprocess
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const pace = options.quick ? quickPace : fullPace
  const site = await start(options)
  await load(site, { perSecond: evenly(site, calmShare), pace: quickPace })
  const calm = await load(site, { perSecond: evenly(site, calmShare), pace })
  console.log('calm: done')
  const overload = await load(site, { perSecond: withGreed(site), pace })
  console.log('overload by one caller: done')
  const crowd = await load(site, { perSecond: null, pace })
  console.log('everyone waits: done')
  const death = await killAndReturn(site, pace)
  const result = { serviceMs, calm, overload, crowd, death }
  console.log(`\n${formatTraffic(result)}`)
  const missed = missedTargets(result)
  for (const target of missed) console.log(`missed: ${target}`)
  writeResult('traffic', options, result)
  return missed.length === 0 ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      callers: { type: 'string', default: '200' },
      workers: { type: 'string', default: '1' },
    },
  })
  return {
    ...readRunOptions(values),
    callers: numberIn(values.callers, { name: 'callers', from: 2, to: 240 }),
    workers: numberIn(values.workers, { name: 'workers', from: 1, to: 16 }),
  }
}

async function start({ callers, workers, databaseServer, settings }: Options): Promise<Site> {
  const upstreams = await Promise.all([
    startUpstream('steady', serviceMs),
    startUpstream('mortal', serviceMs),
    startUpstream('slow', slowFactor * serviceMs),
  ])
  const entries = upstreams.map(
    ({ name, port }) =>
      `[[upstream]]\nname = "${name}"\nurl = "http://127.0.0.1:${port}/v1"\napi = "chat"\n` +
      `models = ["${model}"]\nmax_in_flight = ${slotsPerUpstream}\n`,
  )
  const gateway = await startGateway({
    // Only shows that the gateway is ready.
    upstreamPort: await startMockUpstream(mockLifetimeS),
    upstreamApi: 'chat',
    workers,
    databaseServer,
    settings,
    configLines: entries.join(''),
  })
  const names = Array.from({ length: callers }, (_, at) => `caller-${at}`)
  const bearers = await Promise.all(names.map((name) => gateway.token(name, ['users'])))
  return { gateway, bearers, upstreams }
}

async function startUpstream(name: string, ms: number, port = 0): Promise<TrafficUpstream> {
  const script = join(import.meta.dir, 'traffic-upstream.ts')
  const args = [name, String(ms), String(slotsPerUpstream), String(port)]
  const child = startChild([process.execPath, script, ...args], { stdin: 'pipe' })
  return { name, serviceMs: ms, port: await readPort(child, script), child }
}

function capacity({ upstreams }: Site): number {
  return upstreams.reduce(
    (sum, upstream) => sum + (slotsPerUpstream * 1_000) / upstream.serviceMs,
    0,
  )
}

function evenly(site: Site, share: number): number[] {
  return site.bearers.map(() => (share * capacity(site)) / site.bearers.length)
}

/** The last caller is the greedy one. */
function withGreed(site: Site): number[] {
  const rest = restShare * capacity(site)
  const others = site.bearers.length - 1
  return site.bearers.map((_, at) => (at < others ? rest / others : greed * rest))
}

function jobOf(
  { gateway, bearers }: Site,
  { perSecond, pace }: { perSecond: readonly number[] | null; pace: Pace },
): TrafficJob {
  const isCrowd = perSecond === null
  const last = bearers.length - 1
  return {
    port: gateway.port,
    bearers,
    model,
    perSecond,
    outstanding: bearers.map((_, at) =>
      at === last ? (isCrowd ? greed : greedyOutstandingMax) : isCrowd ? 1 : outstandingMax,
    ),
    windowStartMs: pace.warmUpMs,
    windowMs: pace.windowMs,
    seed,
  }
}

async function load(
  site: Site,
  given: { perSecond: readonly number[] | null; pace: Pace },
): Promise<PhaseResult> {
  const { warmUpMs, windowMs } = given.pace
  const loading = runClient<TrafficReport>('traffic-client.ts', jobOf(site, given))
  await Bun.sleep(clientStartMs + warmUpMs)
  await takeStats(site)
  // Measured within the window, while there is load for certain.
  await Bun.sleep(windowMs - 2 * clientStartMs)
  const stats = await takeStats(site)
  return { report: await loading, stats }
}

const clientStartMs = 500

async function takeStats({ upstreams }: Site): Promise<Record<string, UpstreamStats>> {
  const found = upstreams.map(async ({ name, port }) => {
    const response = await fetch(`http://127.0.0.1:${port}/stats`)
    // The upstreams belong to this benchmark.
    return [name, (await response.json()) as UpstreamStats] as const
  })
  return Object.fromEntries(await Promise.all(found))
}

/** How long the upstream is dead, and how long it is watched after its return. */
const deadMs = 10_000
const returnMs = 20_000

/** Kills an upstream under light load with SIGKILL, and starts it again. */
async function killAndReturn(site: Site, { warmUpMs }: Pace): Promise<DeathResult> {
  const mortal = site.upstreams.find(({ name }) => name === 'mortal')
  if (mortal === undefined) throw new Error('no upstream to kill')
  const pace = { warmUpMs, windowMs: deadMs + returnMs }
  const given = { perSecond: evenly(site, calmShare), pace }
  const loading = runClient<TrafficReport>('traffic-client.ts', jobOf(site, given))
  await Bun.sleep(clientStartMs + warmUpMs)
  const before = await retries(site.gateway)
  const { inFlight } = (await takeStats(site))[mortal.name] ?? { inFlight: 0 }
  mortal.child.kill('SIGKILL')
  await mortal.child.exited
  await Bun.sleep(deadMs)
  const retried = (await retries(site.gateway)) - before
  const again = await startUpstream(mortal.name, mortal.serviceMs, mortal.port)
  mortal.child = again.child
  await Bun.sleep(returnMs)
  const { requests } = (await takeStats(site))[mortal.name] ?? { requests: 0 }
  return { report: await loading, inFlight, retried, returnedRequests: requests }
}

/** Retries so far, from /metrics. */
async function retries({ port }: Gateway): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('sluice_upstream_retries_total{'))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
