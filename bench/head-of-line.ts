import { parseArgs } from 'node:util'
import { createDatabase } from './support/database.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { formatLines, type LineResult, type PromptSize } from './support/line-results.ts'
import { runClient, runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob } from './support/load-job.ts'
import { numberIn } from './support/options.ts'
import { startProbe } from './support/probe.ts'
import { treeWaitMs } from './support/process-tree.ts'
import type { PromptJob, PromptReport } from './support/prompt-job.ts'
import { faultCount, formatFaults, formatSamples, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import { readSettings, settingsOption } from './support/settings.ts'
import { noFaults } from './support/stream-check.ts'

export const question =
  'How long do small streams wait when somebody sends a prompt of half a megabyte, or of five, ' +
  'every second?'
export const usage =
  '[--quick] [--streams 200] [--database postgres://…] [--set key=value]… [--json FILE]'

/** How long things take. */
type Pace = { readonly rounds: number; readonly windowMs: number }

const fullPace: Pace = { rounds: 5, windowMs: 10_000 }
const quickPace: Pace = { rounds: 2, windowMs: 4_500 }
const firstPace: Pace = { rounds: 1, windowMs: 4_500 }

/** Of the prompts beside the streams; 0 is none. */
const promptBytes: Readonly<Record<PromptSize, number>> = {
  none: 0,
  '500 KB': 500_000,
  '5 MB': 5_000_000,
}
const sizes: readonly PromptSize[] = ['none', '500 KB', '5 MB']

const promptEveryMs = 1_000
const probeEveryMs = 20
const tokensPerSecond = 20
const rampMs = 500
/** More than what the programs of the clients take until they are at work. */
const settleMs = 500
const lateMs = 250
const slackMs = 15_000
const mockLifetimeS = 900
/** The upstream of the long prompts is a process of its own, so that the streams do not wait for it. */
const longModel = 'bench-long'

type Options = {
  readonly quick: boolean
  readonly streams: number
  readonly databaseUrl: string | undefined
  readonly settings: readonly string[]
  readonly jsonFile: string | undefined
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const pace = options.quick ? quickPace : fullPace
  const gateway = await start(options)
  // Code that is still being compiled costs more than it will; that is not what we ask about.
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
  const unclean = results.flatMap(({ size, faults }) =>
    faults.filter((found) => faultCount(found) > 0).map((found) => ({ size, found })),
  )
  for (const { size, found } of unclean) {
    console.log(`${size}: ${formatFaults(found)}${formatSamples(found)}`)
  }
  if (options.jsonFile !== undefined) {
    writeResult(options.jsonFile, { bench: 'head-of-line', options, results })
  }
  return unclean.length === 0 ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      streams: { type: 'string', default: '200' },
      database: { type: 'string' },
      set: settingsOption,
      json: { type: 'string' },
    },
  })
  return {
    quick: values.quick,
    streams: numberIn(values.streams, { name: 'streams', from: 1, to: 5_000 }),
    databaseUrl: values.database,
    settings: readSettings(values.set),
    jsonFile: values.json,
  }
}

async function start({ databaseUrl, settings }: Options): Promise<Gateway> {
  const longPort = await startMockUpstream(mockLifetimeS)
  return startGateway({
    upstreamPort: await startMockUpstream(mockLifetimeS),
    upstreamApi: 'chat',
    databaseUrl: databaseUrl === undefined ? undefined : await createDatabase(databaseUrl),
    configLines:
      `[[upstream]]\nname = "long"\nurl = "http://127.0.0.1:${longPort}/v1"\napi = "chat"\n` +
      `models = ["${longModel}"]\n`,
    settings,
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
  const probe = startProbe({
    url: `http://127.0.0.1:${gateway.port}/livez`,
    everyMs: probeEveryMs,
    faults: probeFaults,
  })
  const waitedBeforeMs = treeWaitMs(gateway.pid)
  await Bun.sleep(pace.windowMs)
  const waitedMs = treeWaitMs(gateway.pid)
  const livezMs = await probe.end()
  const report = await loading
  const prompts = await prompting
  return {
    report,
    livezMs,
    promptMs: prompts?.answerMs ?? null,
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
  { port, pid, bearer }: Gateway,
  load: { readonly windowStartMs: number; readonly windowMs: number; readonly streams: number },
): LoadJob {
  const { windowStartMs, windowMs, streams } = load
  const lastsMs = windowStartMs + windowMs + settleMs
  const tokens = Math.ceil((lastsMs / 1000) * tokensPerSecond)
  const bare = { tokenBytes: 0, stepMs: 0, pauseSecondsMax: 0, lastsMs: 0, seed: 0 }
  return {
    ...{ port, bearer, rampMs, windowStartMs, windowMs, lateMs },
    protocol: 'responses',
    stream: true,
    store: false,
    connections: streams,
    mode: 'once',
    plans: [{ ...bare, tokens, tokensPerSecond }],
    promptBytes: 1024,
    deadlineMs: lastsMs + slackMs,
    measurePid: pid,
    progressMs: 0,
  }
}
