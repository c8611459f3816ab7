import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isRecord, parseJson } from '#lib/json.ts'
import { StartError, stopChildren, temporaryFolder } from './support/children.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { startServer } from './support/load.ts'
import { numberIn } from './support/options.ts'
import { toMebibytes, treeMemoryBytes, treeUsage } from './support/process-tree.ts'
import { writeResult } from './support/report.ts'
import { formatTable } from './support/table.ts'

export const summary =
  'CPU, latency and memory of local speech recognition, with a recorded human voice in Opus.'
export const usage =
  '[--local FOLDER of .ci/speech] [--sessions 1,10,50] [--seconds 22] [--threads 1] [--load-max 0.8] [--json FILE]'

/** Kennedy's inaugural address. */
const recording = join(import.meta.dir, '../test/recordings/speech/jfk.opus')
const recordingMs = 11_000
const sendEveryMs = 100
/** With many sessions the model is behind. */
const slackMs = 240_000

type Heard = {
  /** From the end of a word in the audio to the first transcript with it. */
  readonly wordMs: readonly number[]
  readonly words: number
  readonly partials: number
  /** From the end of the audio to the end of the session. */
  readonly endMs: number
  readonly untranscribedMs: number
  /** Sessions that the model was too slow for. */
  readonly failed: number
  /** Sessions that were not admitted, because the model would have been too slow for them. */
  readonly refused: number
}

type Row = {
  readonly sessions: number
  readonly cpuMsPerSecond: number
  readonly wordMs: readonly [p50: number, p90: number]
  readonly endMs: number
  readonly partialsPerSession: number
  readonly words: number
  readonly untranscribedMs: number
  readonly failed: number
  readonly refused: number
  readonly idleBytes: number
  readonly peakBytes: number
}

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const rows: Row[] = []
  try {
    for (const sessions of options.sessions) {
      rows.push(await measure(sessions, options))
      await stopChildren()
    }
  } finally {
    await stopChildren()
  }
  console.log(`\n${formatRows(rows)}\n`)
  writeResult('local-speech', options, { rows })
  return rows.every(({ failed, untranscribedMs }) => failed + untranscribedMs === 0) ? 0 : 1
}

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      local: { type: 'string', default: process.env['SLUICE_TEST_SPEECH'] ?? '' },
      sessions: { type: 'string', default: '1,10,50' },
      seconds: { type: 'string', default: '22' },
      threads: { type: 'string', default: '1' },
      'load-max': { type: 'string' },
      json: { type: 'string' },
    },
  })
  if (values.local === '') throw new StartError('--local, or SLUICE_TEST_SPEECH, names no folder')
  const whole = (text: string, name: string, to: number) =>
    Math.round(numberIn(text, { name, from: 1, to }))
  return {
    local: values.local,
    sessions: values.sessions.split(',').map((text) => whole(text, 'sessions', 1_000)),
    repeats: Math.ceil(whole(values.seconds, 'seconds', 3_600) / (recordingMs / 1_000)),
    threads: whole(values.threads, 'threads', 64),
    loadMax: values['load-max'],
    jsonFile: values.json,
  }
}

async function measure(
  sessions: number,
  { local, repeats, threads, loadMax }: ReturnType<typeof readOptions>,
): Promise<Row> {
  const dataFolder = join(temporaryFolder(), 'data')
  mkdirSync(dataFolder)
  symlinkSync(join(local, 'sherpa'), join(dataFolder, 'sherpa'))
  const gateway = await startGateway({
    upstreamPort: await startServer('embedding-upstream.ts', ['8']),
    upstreamApi: 'chat',
    dataFolder,
    logLevel: 'warn',
    configLines: [
      `[speech]\nsessions_per_user_max = ${sessions}`,
      `[[engine]]\nname = "local"\nkind = "local"\nmodel = "${join(local, 'tiny.en')}"`,
      ...(loadMax === undefined ? [] : [`load_max = ${loadMax}`]),
      `threads = ${threads}\nsessions_max = ${sessions}\nlanguages = ["en"]\n`,
    ].join('\n'),
  })
  // Loads the model.
  const audio = await Bun.file(recording).bytes()
  await speak(gateway, audio, 1)
  const idleBytes = treeMemoryBytes(gateway.pid)
  const cpuMs = treeUsage(gateway.pid).cpuMs
  let peakBytes = idleBytes
  const sampling = setInterval(() => {
    peakBytes = Math.max(peakBytes, treeMemoryBytes(gateway.pid))
  }, 1_000)
  const opened = Array.from({ length: sessions }, () => speak(gateway, audio, repeats))
  const heard = await Promise.all(opened).finally(() => clearInterval(sampling))
  const sum = (field: 'words' | 'partials' | 'untranscribedMs' | 'failed' | 'refused') =>
    heard.reduce((total, session) => total + session[field], 0)
  const admitted = sessions - sum('refused') / repeats
  const audioS = (admitted * repeats * recordingMs) / 1_000
  const row = {
    sessions,
    cpuMsPerSecond: (treeUsage(gateway.pid).cpuMs - cpuMs) / audioS,
    wordMs: quantiles(heard.flatMap(({ wordMs }) => wordMs)),
    endMs: quantiles(heard.flatMap(({ endMs, refused }) => (refused > 0 ? [] : [endMs])))[0],
    partialsPerSession: sum('partials') / admitted,
    words: sum('words') / admitted,
    untranscribedMs: sum('untranscribedMs'),
    failed: sum('failed'),
    refused: sum('refused'),
    idleBytes,
    peakBytes,
  }
  console.log(
    `${sessions} sessions: ${Math.round(row.cpuMsPerSecond)} ms of CPU per second of audio`,
  )
  return row
}

/** One session that speaks in real time. Each recording is a stream of its own, since Opus has headers. */
async function speak(gateway: Gateway, audio: Uint8Array, repeats: number): Promise<Heard> {
  const all: Heard[] = []
  for (let repeat = 0; repeat < repeats; repeat++) all.push(await speakOnce(gateway, audio))
  const last = all.at(-1)
  return {
    wordMs: all.flatMap(({ wordMs }) => wordMs),
    words: all.reduce((sum, { words }) => sum + words, 0),
    partials: all.reduce((sum, { partials }) => sum + partials, 0),
    endMs: last?.endMs ?? 0,
    untranscribedMs: all.reduce((sum, { untranscribedMs }) => sum + untranscribedMs, 0),
    failed: all.reduce((sum, { failed }) => sum + failed, 0),
    refused: all.reduce((sum, { refused }) => sum + refused, 0),
  }
}

type Transcript = { readonly atMs: number; readonly text: string; readonly isFinal: boolean }

function speakOnce({ port, bearer }: Gateway, audio: Uint8Array): Promise<Heard> {
  const { promise, resolve, reject } = Promise.withResolvers<Heard>()
  const query = `lang=en&encoding=opus&token=${bearer}`
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stt?${query}`)
  const transcripts: Transcript[] = []
  const wordEndsMs: number[] = []
  let startedMs = 0
  let sending: Timer | undefined
  const failure = setTimeout(() => reject(new StartError('a session did not end')), slackMs)

  function start(): void {
    startedMs = performance.now()
    let sent = 0
    sending = setInterval(() => {
      const due = ((performance.now() - startedMs) / recordingMs) * audio.length
      const until = Math.min(audio.length, Math.floor(due))
      socket.send(audio.subarray(sent, until))
      sent = until
      if (sent < audio.length) return
      clearInterval(sending)
      socket.send(JSON.stringify({ type: 'session_end' }))
    }, sendEveryMs)
  }

  function take(frame: Readonly<Record<string, unknown>>): void {
    const atMs = performance.now() - startedMs
    if (frame['type'] === 'session_ready') start()
    else if (frame['type'] === 'transcript') {
      const isFinal = frame['is_final'] === true
      transcripts.push({ atMs, text: String(frame['text']), isFinal })
      const words = isFinal && Array.isArray(frame['words']) ? frame['words'] : []
      for (const word of words) wordEndsMs.push(Number(Object(word)['end']) * 1_000)
    } else if (frame['type'] === 'session_end') {
      const untranscribedMs = Number(Object(frame['stats'])['untranscribed_ms'])
      end(untranscribedMs, 'ended')
    } else if (frame['type'] === 'error') {
      const code = String(Object(frame['error'])['code'])
      noteError(code)
      end(0, code === 'capacity' ? 'refused' : 'failed')
    }
  }

  function end(untranscribedMs: number, outcome: 'ended' | 'failed' | 'refused'): void {
    clearTimeout(failure)
    const endMs = performance.now() - startedMs - recordingMs
    const partials = transcripts.filter(({ isFinal }) => !isFinal).length
    const wordMs = wordLatencies(transcripts, wordEndsMs)
    const failed = outcome === 'failed' ? 1 : 0
    const refused = outcome === 'refused' ? 1 : 0
    const words = wordEndsMs.length
    resolve({ wordMs, words, partials, endMs, untranscribedMs, failed, refused })
  }

  socket.onopen = () => socket.send(JSON.stringify({ options: { words: true } }))
  socket.onmessage = ({ data }) => {
    const frame = parseJson(String(data))
    if (isRecord(frame)) take(frame)
  }
  socket.onclose = ({ code, reason }) => {
    clearInterval(sending)
    reject(new StartError(`a session was closed with ${code} ${reason}`))
  }
  return promise
}

const noted = new Set<string>()

function noteError(code: string): void {
  if (!noted.has(code)) console.error(`a session failed: ${code}`)
  noted.add(code)
}

/** A word is heard once a transcript, with the finals before it, has as many words. */
function wordLatencies(
  transcripts: readonly Transcript[],
  wordEndsMs: readonly number[],
): readonly number[] {
  const latencies: number[] = []
  let finals = 0
  let heard = 0
  for (const { atMs, text, isFinal } of transcripts) {
    const words = finals + text.split(/\s+/).filter((word) => word !== '').length
    for (; heard < Math.min(words, wordEndsMs.length); heard++) {
      latencies.push(atMs - (wordEndsMs[heard] ?? 0))
    }
    if (isFinal) finals = words
  }
  return latencies
}

function quantiles(values: readonly number[]): [p50: number, p90: number] {
  const ordered = values.toSorted((one, other) => one - other)
  const at = (share: number) => ordered[Math.floor((ordered.length - 1) * share)] ?? 0
  return [at(0.5), at(0.9)]
}

function formatRows(rows: readonly Row[]): string {
  const header = ['sessions', 'CPU per second of audio', 'word end → transcript, p50 / p90']
  const rest = [
    'end of audio → end',
    'partials',
    'words',
    'lost',
    'failed',
    'refused',
    'memory: model loaded, peak',
  ]
  return formatTable(
    [...header, ...rest],
    rows.map((row) => [
      String(row.sessions),
      `${row.cpuMsPerSecond.toFixed(0)} ms`,
      row.wordMs.map((ms) => `${(ms / 1_000).toFixed(1)} s`).join(' / '),
      `${(row.endMs / 1_000).toFixed(1)} s`,
      row.partialsPerSession.toFixed(1),
      row.words.toFixed(0),
      `${row.untranscribedMs} ms`,
      String(row.failed),
      String(row.refused),
      `${toMebibytes(row.idleBytes)}, ${toMebibytes(row.peakBytes)}`,
    ]),
  )
}
