import { parseArgs } from 'node:util'
import { type Gateway, startGateway, waitForIdle } from './support/gateway.ts'
import { runLoad, startMockUpstream } from './support/load.ts'
import type { LoadJob, LoadReport } from './support/load-job.ts'
import { requestBytes, streamedResponses } from './support/load-request.ts'
import { numberIn, type RunOptions, readRunOptions, runFlags } from './support/options.ts'
import { barePlan, type Plan } from './support/plan.ts'
import { treeMemoryBytes } from './support/process-tree.ts'
import { printFaults, writeResult } from './support/report.ts'
import { inTurn } from './support/rounds.ts'
import {
  formatActiveReaders,
  formatHeld,
  type StallMemoryResult,
  type StallResult,
} from './support/stall-results.ts'
import {
  openStalledReaders,
  type StalledBuffers,
  waitForStalledBuffers,
} from './support/stalled-readers.ts'
import { type Faults, noFaults, noteFailure } from './support/stream-check.ts'

export const summary = 'Delay that stalled readers cause for others, and memory of each.'
export const usage =
  '[--quick] [--streams 1000] [--stalled 50] [--database postgres://…] [--set key=value]… ' +
  '[--json FILE]'

/** Durations. */
type Pace = {
  readonly rounds: number
  readonly settleMs: number
  readonly windowMs: number
  readonly heldRounds: number
}

const fullPace: Pace = { rounds: 5, settleMs: 2_000, windowMs: 10_000, heldRounds: 3 }
const quickPace: Pace = { rounds: 2, settleMs: 500, windowMs: 3_000, heldRounds: 1 }

const rampMs = 1_000
const tokensPerSecond = 20
const slackMs = 15_000
const mockLifetimeS = 1_800
/** Time within which a generation without a reader ends. */
const leaveMs = 5_000
/** Time for garbage collection of an idle gateway; the minimum is used. */
const restMs = 4_000
const lookEveryMs = 500
const warmUpMs = 1_500
/** Memory size reported to the garbage collector while retained memory is measured. */
const frugalBytes = 200_000_000

/** Bytes of a stalled stream: more than kernel buffers hold. */
const stalledPlan: Plan = { ...barePlan, tokens: 5_000, tokenBytes: 4_000 }

type Options = RunOptions & {
  readonly streams: number
  readonly stalled: number
}

type Target = Gateway & { readonly mockPort: number }

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const pace = options.quick ? quickPace : fullPace
  const faults = noFaults()
  const held = await runHeld({ options, pace, faults })
  const results = await runOthers({ options, pace, faults })
  console.log(`\n${formatActiveReaders(results, options)}\n\n${formatHeld(held, options.stalled)}`)
  const isWhole = printFaults([
    { where: 'stalled', faults },
    ...results.map(({ report }) => ({ where: 'active', faults: report.faults })),
  ])
  writeResult('stalled-readers', options, { results, held, faults })
  return isWhole ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...runFlags,
      streams: { type: 'string', default: '1000' },
      stalled: { type: 'string', default: '50' },
    },
  })
  const streams = numberIn(values.streams, { name: 'streams', from: 2, to: 5_000 })
  return {
    ...readRunOptions(values),
    streams,
    stalled: numberIn(values.stalled, { name: 'stalled', from: 1, to: streams - 1 }),
  }
}

type Work = { readonly options: Options; readonly pace: Pace; readonly faults: Faults }

async function start(
  { databaseServer, settings }: Options,
  memory: { readonly frugalBytes?: number } = {},
): Promise<Target> {
  const mockPort = await startMockUpstream(mockLifetimeS)
  const gateway = await startGateway({
    upstreamPort: mockPort,
    upstreamApi: 'chat',
    databaseServer,
    settings,
    ...memory,
  })
  return { ...gateway, mockPort }
}

/** Memory that a gateway without garbage retains for stalled readers only. */
async function runHeld({ options, pace, faults }: Work): Promise<StallMemoryResult[]> {
  const target = await start(options, { frugalBytes })
  await runLoad(warmUpJob(target))
  const results: StallMemoryResult[] = []
  for (let round = 0; round < pace.heldRounds; round++) {
    const before = await memoryAtRest(target)
    let besideThem = before
    const standstill = await besideStalled(target, { options, faults }, async () => {
      besideThem = await memoryAtRest(target)
    })
    results.push({ before, besideThem, after: await memoryAtRest(target), standstill })
  }
  return results
}

async function memoryAtRest({ pid }: Target): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let restedMs = 0; restedMs < restMs; restedMs += lookEveryMs) {
    await Bun.sleep(lookEveryMs)
    least = Math.min(least, treeMemoryBytes(pid))
  }
  return least
}

/** Active readers, alone and beside stalled ones. */
async function runOthers(work: Work): Promise<StallResult[]> {
  const { options, pace } = work
  const target = await start(options)
  const results: StallResult[] = []
  await runActiveReaders(target, work)
  for (let round = 0; round < pace.rounds; round++) {
    for (const isBeside of inTurn([false, true], round)) {
      if (!isBeside) results.push({ round, isBeside, report: await runActiveReaders(target, work) })
      else {
        await besideStalled(target, work, async () => {
          results.push({ round, isBeside, report: await runActiveReaders(target, work) })
        })
      }
    }
    console.log(`round ${round + 1} of ${pace.rounds} is done`)
  }
  return results
}

/** Runs an action while readers are stalled, and verifies that they stalled and were removed. */
async function besideStalled(
  target: Target,
  { options, faults }: Pick<Work, 'options' | 'faults'>,
  look: () => Promise<void>,
): Promise<StalledBuffers> {
  const readers = await openStalledReaders({
    port: target.port,
    request: requestBytes(streamedResponses(target), stalledPlan),
    count: options.stalled,
    faults,
  })
  const standstill = await waitForStalledBuffers(target, options.stalled)
  await look()
  const fail = (count: number, sentence: string) =>
    noteFailure(faults, `${count} of ${options.stalled} ${sentence}`, count)
  fail(options.stalled - Math.min(standstill.readers, readers.stalled()), 'did not stall')
  fail(readers.cutOff(), 'were disconnected too early')
  readers.close()
  fail(await waitForIdle(target.port, leaveMs), `still run ${leaveMs} ms after their readers left`)
  return standstill
}

function runActiveReaders(target: Target, { options, pace }: Work): Promise<LoadReport> {
  const windowStartMs = rampMs + pace.settleMs
  const lastsMs = windowStartMs + pace.windowMs + 300
  const tokens = Math.ceil((lastsMs / 1000) * tokensPerSecond)
  return runLoad({
    ...streamedResponses(target),
    connections: options.streams - options.stalled,
    mode: 'once',
    rampMs,
    windowStartMs,
    windowMs: pace.windowMs,
    plans: [{ ...barePlan, tokens, tokensPerSecond }],
    deadlineMs: lastsMs + slackMs,
  })
}

/** The same responses, read. */
function warmUpJob(target: Target): LoadJob {
  return {
    ...streamedResponses(target),
    connections: 8,
    mode: 'repeat',
    rampMs,
    windowStartMs: 0,
    windowMs: warmUpMs,
    plans: [{ ...stalledPlan, tokens: 200 }],
    deadlineMs: warmUpMs + slackMs,
  }
}
