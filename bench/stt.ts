import { parseArgs } from 'node:util'
import { stopChildren } from './support/children.ts'
import { startGateway } from './support/gateway.ts'
import { runSpeechLoad, startMockUpstream, startServer } from './support/load.ts'
import { numberIn, oneOf, readSettings, settingsOption } from './support/options.ts'
import { startLivezProbe } from './support/probe.ts'
import { treeMemoryBytes, treeUsage, treeWaitMs } from './support/process-tree.ts'
import { printFaults, writeResult } from './support/report.ts'
import { kernelSocketBytes } from './support/socket-queues.ts'
import { type Encoding, encodings } from './support/speech-encoding.ts'
import type { SpeechJob, SpeechProgress } from './support/speech-job.ts'
import { frameMs, utteranceMs } from './support/speech-plan.ts'
import {
  formatSpeechResult,
  type PartName,
  type PartResult,
  type Scale,
} from './support/speech-results.ts'
import { noFaults } from './support/stream-check.ts'

export const summary =
  'Lost words, lag and memory of hundreds of speech sessions, also with flooding clients.'
export const usage =
  '[--part all|soak|live|flood] [--encoding pcm_int16|opus|mp3] [--quick] [--sessions N] [--seconds N] [--set key=value]… [--json FILE]'

const parts = ['soak', 'live', 'flood'] as const

/**
 * `soak`: ten minutes each. `live`: the maximum of one worker. `flood`: faster than a real-time
 * engine.
 */
const scales: Readonly<Record<PartName, { readonly full: Scale; readonly quick: Scale }>> = {
  soak: { full: { sessions: 100, seconds: 600 }, quick: { sessions: 100, seconds: 40 } },
  live: { full: { sessions: 500, seconds: 120 }, quick: { sessions: 500, seconds: 40 } },
  flood: { full: { sessions: 200, seconds: 60 }, quick: { sessions: 200, seconds: 30 } },
}

const sampleEveryMs = 5_000
const rampMs = 5_000
/** Time after the last frame for the last finals. */
const slackMs = 30_000

type Options = {
  readonly parts: readonly PartName[]
  /** `flood` sends PCM. */
  readonly encoding: Encoding
  readonly isQuick: boolean
  readonly sessions: number | null
  readonly seconds: number | null
  readonly settings: readonly string[]
  readonly jsonFile: string | undefined
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const results: PartResult[] = []
  for (const part of options.parts) {
    results.push(await runPart(part, options))
    await stopChildren()
  }
  for (const result of results) console.log(formatSpeechResult(result))
  writeResult('stt', options, { results })
  return results.every(isClean) ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      part: { type: 'string', default: 'all' },
      encoding: { type: 'string', default: 'pcm_int16' },
      quick: { type: 'boolean', default: false },
      sessions: { type: 'string' },
      seconds: { type: 'string' },
      set: settingsOption,
      json: { type: 'string' },
    },
  })
  const encoding = oneOf(values.encoding, { name: 'encoding', words: encodings })
  const possible = encoding === 'pcm_int16' ? parts : (['soak', 'live'] as const)
  const part = oneOf(values.part, { name: 'part', words: ['all', ...possible] })
  const whole = (text: string | undefined, name: string) =>
    text === undefined ? null : Math.round(numberIn(text, { name, from: 2, to: 3_600 }))
  const seconds = whole(values.seconds, 'seconds')
  return {
    parts: part === 'all' ? possible : [part],
    encoding,
    isQuick: values.quick,
    sessions: whole(values.sessions, 'sessions'),
    // Only whole utterances.
    seconds: seconds === null ? null : seconds - (seconds % (utteranceMs / 1000)),
    settings: readSettings(values.set),
    jsonFile: values.json,
  }
}

async function runPart(part: PartName, options: Options): Promise<PartResult> {
  const preset = options.isQuick ? scales[part].quick : scales[part].full
  const scale = {
    sessions: options.sessions ?? preset.sessions,
    seconds: options.seconds ?? preset.seconds,
  }
  console.log(`${part}: ${scale.sessions} sessions of ${scale.seconds} s`)
  const isFlood = part === 'flood'
  const enginePort = await startServer('speech-engine.ts', isFlood ? ['1'] : [])
  const gateway = await startGateway({
    upstreamPort: await startMockUpstream(scale.seconds + 300),
    upstreamApi: 'chat',
    configLines: configuration(enginePort, scale.sessions),
    settings: options.settings,
  })
  const job: SpeechJob = {
    port: gateway.port,
    bearer: gateway.bearer,
    ...scale,
    rampMs,
    mode: isFlood ? 'flood' : 'live',
    encoding: options.encoding,
    deadlineMs: rampMs + scale.seconds * 1000 + slackMs,
    progressMs: sampleEveryMs,
  }
  const watch = watchGateway(gateway)
  const report = await runSpeechLoad(job, (progress) => {
    watch.sample(progress.elapsedMs)
    printProgress(progress)
  })
  return { part, encoding: options.encoding, scale, report, ...(await watch.end()) }
}

/** All sessions belong to one user and one engine; otherwise defaults. */
function configuration(enginePort: number, sessions: number): string {
  return [
    `[speech]\nsessions_per_user_max = ${sessions}`,
    '[[engine]]\nname = "stub"\nkind = "vosk"\nlanguages = ["en"]',
    `url = "ws://127.0.0.1:${enginePort}"\nsessions_max = ${sessions * 2}\n`,
  ].join('\n')
}

/** Memory, CPU time and responsiveness of a gateway, measured from outside. */
function watchGateway({ pid, port }: { pid: number; port: number }) {
  const memory = [{ atMs: 0, bytes: treeMemoryBytes(pid) }]
  const idleCpuMs = treeUsage(pid).cpuMs
  const idleWaitMs = treeWaitMs(pid)
  const faults = noFaults()
  const probe = startLivezProbe({ port }, faults)
  let kernelBytesMax = 0
  return {
    sample(atMs: number) {
      memory.push({ atMs, bytes: treeMemoryBytes(pid) })
      kernelBytesMax = Math.max(kernelBytesMax, kernelSocketBytes())
    },
    async end() {
      const cpuMs = treeUsage(pid).cpuMs - idleCpuMs
      const waitMs = treeWaitMs(pid)
      const waitedMs = waitMs === null || idleWaitMs === null ? null : waitMs - idleWaitMs
      const probeMs = await probe.end()
      printFaults([{ where: 'probe', faults }])
      return { memory, kernelBytesMax, probeMs, cpuMs, waitedMs }
    },
  }
}

function isClean({ report, part }: PartResult): boolean {
  const { lost, wrong, failed } = report.faults
  const isWhole = part === 'flood' || report.untranscribedMs === 0
  return lost + wrong + failed === 0 && isWhole
}

function printProgress({ elapsedMs, ...progress }: SpeechProgress['progress']): void {
  const { sessionsOpen, framesSent, finals, faults } = progress
  const audioS = Math.round((framesSent * frameMs) / 1000)
  console.log(
    `${Math.round(elapsedMs / 1000)} s: ${sessionsOpen} sessions, ${audioS} s of audio sent, ` +
      `${finals} finals; ${faults.lost} words lost, ${faults.failed} sessions failed`,
  )
}
