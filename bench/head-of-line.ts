import { parseArgs } from 'node:util'
import { type Gateway, startGateway } from './support/gateway.ts'
import { formatLines, type LineResult, type PromptSize } from './support/head-of-line-results.ts'
import { runClient, runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob } from './support/load-job.ts'
import { streamedResponses } from './support/load-request.ts'
import { numberIn, type RunOptions, readRunOptions, runFlags } from './support/options.ts'
import { barePlan } from './support/plan.ts'
import { startLivezProbe } from './support/probe.ts'
import { treeWaitMs } from './support/process-tree.ts'
import type { PromptJob, PromptReport } from './support/prompt-job.ts'
import { printFaults, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import { noFaults } from './support/stream-check.ts'

export const summary = 'Delay that prompts of 500 KB and 5 MB cause for other streams.'
export const usage =
  '[--quick] [--streams 200] [--database postgres://…] [--set key=value]… [--json FILE]'

/** Durations. */
type Pace = { readonly rounds: number; readonly windowMs: number }

const fullPace: Pace = { rounds: 5, windowMs: 10_000 }
const quickPace: Pace = { rounds: 2, windowMs: 4_500 }
const firstPace: Pace = { rounds: 1, windowMs: 4_500 }

/** Size of the long prompts; 0: none. */
const promptBytes: Readonly<Record<PromptSize, number>> = {
  none: 0,
  '500 KB': 500_000,
  '5 MB': 5_000_000,
}
const sizes: readonly PromptSize[] = ['none', '500 KB', '5 MB']

const promptEveryMs = 1_000
const tokensPerSecond = 20
const rampMs = 500
/** Longer than the start of the client programs. */
const settleMs = 500
const slackMs = 15_000
const mockLifetimeS = 900
/** Long prompts have their own upstream process, so that they do not delay the streams. */
const longModel = 'bench-long'

type Options = RunOptions & {
  readonly streams: number
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const pace = options.quick ? quickPace : fullPace
  const gateway = await start(options)
  // Compilation is excluded from the measurement.
  await measure(gateway, { size: '500 KB', pace: firstPace, streams: options.streams })
  await measure(gateway, { size: '5 MB', pace: firstPace, streams: options.streams })
  const results: LineResult[] = []
  for (let round = 0; round < pace.rounds; round++) {
    for (const size of inTurn(sizes, round)) {
      const { streams } = options
      results.push({ round, size, ...(await measure(gateway, { size, pace, streams })) })
    }
    console.log(`round ${round + 1} of ${pace.rounds} is done`)
  }
  console.log(`\n${formatLines(results, sizes)}`)
  const isWhole = printFaults(
    results.flatMap(({ size, faults }) => faults.map((found) => ({ where: size, faults: found }))),
  )
  writeResult('head-of-line', options, { results })
  return isWhole ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      streams: { type: 'string', default: '200' },
    },
  })
  return {
    ...readRunOptions(values),
    streams: numberIn(values.streams, { name: 'streams', from: 1, to: 5_000 }),
  }
}

async function start({ databaseServer, settings }: Options): Promise<Gateway> {
  const longPort = await startMockUpstream(mockLifetimeS)
  return startGateway({
    upstreamPort: await startMockUpstream(mockLifetimeS),
    upstreamApi: 'chat',
    databaseServer,
    settings,
    configLines:
      `[[upstream]]\nname = "long"\nurl = "http://127.0.0.1:${longPort}/v1"\napi = "chat"\n` +
      `models = ["${longModel}"]\n`,
  })
}

async function measure(
  gateway: Gateway,
  options: { readonly size: PromptSize; readonly pace: Pace; readonly streams: number },
): Promise<Omit<LineResult, 'round' | 'size'>> {
  const { pace, size, streams } = options
  const windowStartMs = rampMs + settleMs
  const lastsMs = windowStartMs + pace.windowMs
  const prompting = size === 'none' ? null : sendPrompts(gateway, promptBytes[size], lastsMs)
  const loading = runLoad(streamJob(gateway, { windowStartMs, streams, windowMs: pace.windowMs }))
  await Bun.sleep(windowStartMs)
  const probeFaults = noFaults()
  const probe = startLivezProbe(gateway, probeFaults)
  const waitedBeforeMs = treeWaitMs(gateway.pid)
  await Bun.sleep(pace.windowMs)
  const waitedMs = treeWaitMs(gateway.pid)
  const livezMs = await probe.end()
  const report = await loading
  const prompts = await prompting
  return {
    report,
    livezMs,
    promptMs: prompts?.responseMs ?? null,
    waitedMs: waitedMs === null || waitedBeforeMs === null ? null : waitedMs - waitedBeforeMs,
    faults: [report.faults, probeFaults, ...(prompts === null ? [] : [prompts.faults])],
  }
}

function sendPrompts(gateway: Gateway, bytes: number, lastsMs: number): Promise<PromptReport> {
  const job: PromptJob = {
    port: gateway.port,
    bearer: gateway.bearer,
    model: longModel,
    promptBytes: bytes,
    everyMs: promptEveryMs,
    lastsMs,
  }
  return runClient<PromptReport>('prompt-client.ts', job)
}

function streamJob(
  gateway: Gateway,
  load: { readonly windowStartMs: number; readonly windowMs: number; readonly streams: number },
): LoadJob {
  const { windowStartMs, windowMs, streams } = load
  const lastsMs = windowStartMs + windowMs + settleMs
  const tokens = Math.ceil((lastsMs / 1000) * tokensPerSecond)
  return {
    ...streamedResponses(gateway),
    connections: streams,
    mode: 'once',
    rampMs,
    windowStartMs,
    windowMs,
    plans: [{ ...barePlan, tokens, tokensPerSecond }],
    deadlineMs: lastsMs + slackMs,
  }
}
