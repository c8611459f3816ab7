/**
 * Speech clients in a process of their own: WebSockets that send audio and check every word. Reads
 * one line of JSON from standard input, a `SpeechJob`, and prints one, a `SpeechReport`. Exits
 * with the job, at its deadline, or when standard input closes.
 */
import { isRecord, parseJson } from '#lib/json.ts'
import { Histogram } from './support/histogram.ts'
import { serveJob } from './support/job-process.ts'
import { encodeFrames, queryOf } from './support/speech-encoding.ts'
import type { SpeechJob, SpeechProgress, SpeechReport } from './support/speech-job.ts'
import {
  frameMs,
  framesOf,
  framesPerUtterance,
  makeSpeech,
  noSpeechFaults,
  noteSpeechFault,
  type Speech,
  SpeechCheck,
  utteranceMs,
} from './support/speech-plan.ts'

const tickMs = 5
/** Bytes that a flooding client buffers ahead of its socket. */
const floodAheadBytes = 262_144
/** Audio after which a flooding client starts over. */
const floodSpeechSeconds = 600
/** Encoded recordings, each from its own starting point; sessions take turns with them. */
const recordings = 8

/** A starting point of the speech, and the 20 ms frames from there. */
type Recording = { readonly start: number; readonly frameAt: (frame: number) => Uint8Array }

const tally = {
  framesSent: 0,
  finals: 0,
  partials: 0,
  acks: 0,
  rollovers: 0,
  untranscribedMs: 0,
  faults: noSpeechFaults(),
  finalMs: new Histogram(),
  latenessMs: new Histogram(),
  closeCodes: new Map<number, number>(),
}

class Client {
  readonly #job: SpeechJob
  readonly #number: number
  readonly #check: SpeechCheck
  readonly #frameAt: (frame: number) => Uint8Array
  readonly #frames: number
  /** Send time of the last frame of each utterance. */
  readonly #utteranceSentMs: Float64Array
  readonly #socket: WebSocket
  #startedMs = 0
  #sent = 0
  #sentBytes = 0
  #creditBytes = 0
  isOver = false

  constructor(job: SpeechJob, number: number, speech: Speech, { start, frameAt }: Recording) {
    this.#job = job
    this.#number = number
    this.#check = new SpeechCheck(speech, { session: number, start, faults: tally.faults })
    this.#frameAt = frameAt
    const isLive = job.mode === 'live'
    this.#frames = isLive ? (job.seconds * 1000) / frameMs : Number.POSITIVE_INFINITY
    this.#utteranceSentMs = new Float64Array(isLive ? this.#frames / framesPerUtterance + 1 : 0)
    const query = `${queryOf(job.encoding)}&token=${job.bearer}`
    this.#socket = new WebSocket(`ws://127.0.0.1:${job.port}/v1/stt?${query}`)
    const options = isLive ? { flow: 'credit' } : { live: false }
    this.#socket.onopen = () => this.#socket.send(JSON.stringify({ options }))
    this.#socket.onmessage = ({ data }) => this.#take(asFrame(data))
    this.#socket.onclose = ({ code, reason }) => this.#closed(code, reason)
  }

  heardMs(): number {
    return this.#check.utterances() * utteranceMs
  }

  words(): number {
    return this.#check.heard
  }

  /** Sends due frames. */
  tick(nowMs: number): void {
    if (this.#startedMs === 0 || this.isOver) return
    if (this.#job.mode === 'flood') this.#flood()
    else this.#goOn(nowMs)
  }

  /** Disconnects in the middle, as flooding clients do. */
  leave(): void {
    this.isOver = true
    this.#socket.terminate()
  }

  fail(sentence: string): void {
    if (this.isOver) return
    this.isOver = true
    tally.faults.failed += 1
    noteSpeechFault(tally.faults, `session ${this.#number}: ${sentence}`)
  }

  #goOn(nowMs: number): void {
    while (this.#sent < this.#frames) {
      const lateMs = nowMs - this.#startedMs - this.#sent * frameMs
      const frame = this.#frameAt(this.#sent)
      if (lateMs < 0 || this.#sentBytes + frame.length > this.#creditBytes) return
      tally.latenessMs.record(lateMs)
      this.#send(frame)
      if (this.#sent % framesPerUtterance === 0) {
        this.#utteranceSentMs[this.#sent / framesPerUtterance - 1] = performance.now()
      }
      if (this.#sent === this.#frames) this.#socket.send(JSON.stringify({ type: 'session_end' }))
    }
  }

  #flood(): void {
    while (this.#socket.bufferedAmount < floodAheadBytes) this.#send(this.#frameAt(this.#sent))
  }

  #send(frame: Uint8Array): void {
    this.#socket.send(frame)
    this.#sent += 1
    this.#sentBytes += frame.length
    tally.framesSent += 1
  }

  #take(frame: { readonly [field: string]: unknown }): void {
    switch (frame['type']) {
      case 'session_ready':
        this.#creditBytes = Number(Object(frame['flow'])['credit_bytes'] ?? 0)
        this.#startedMs = performance.now()
        break
      case 'audio_ack':
        tally.acks += 1
        this.#creditBytes = Number(frame['credit_bytes'])
        break
      case 'transcript':
        if (frame['is_final'] === true) this.#takeFinal(String(frame['text']))
        else tally.partials += 1
        break
      case 'session_end':
        this.#takeStats(Object(frame['stats']))
        break
      case 'error':
        this.fail(JSON.stringify(frame['error']))
        break
      default:
    }
  }

  #takeFinal(text: string): void {
    tally.finals += 1
    const before = this.#check.utterances()
    this.#check.final(text)
    const sentMs = this.#utteranceSentMs[this.#check.utterances() - 1] ?? 0
    if (this.#check.utterances() > before && sentMs > 0) {
      tally.finalMs.record(performance.now() - sentMs)
    }
  }

  #takeStats(stats: { readonly [field: string]: unknown }): void {
    tally.untranscribedMs += Number(stats['untranscribed_ms'])
    tally.rollovers += Number(Object(stats['engine'])['rollovers'])
    this.#check.end(this.#frames)
  }

  #closed(code: number, reason: string): void {
    tally.closeCodes.set(code, (tally.closeCodes.get(code) ?? 0) + 1)
    if (code !== 1000) this.fail(`closed with ${code} ${reason}`)
    this.isOver = true
  }
}

function asFrame(data: unknown): { readonly [field: string]: unknown } {
  const frame = typeof data === 'string' ? parseJson(data) : undefined
  return isRecord(frame) ? frame : {}
}

async function runJob(job: SpeechJob): Promise<SpeechReport> {
  const speech = makeSpeech(job.mode === 'live' ? job.seconds : floodSpeechSeconds)
  const recordingOf = await record(job, speech)
  return new Promise((report) => runClients(job, { speech, recordingOf, report }))
}

/** The recording of each session. */
async function record(
  { encoding, seconds }: SpeechJob,
  speech: Speech,
): Promise<(session: number) => Recording> {
  const recordingAt = (start: number) => ({ start, frameAt: framesOf(speech, start) })
  if (encoding === 'pcm_int16') return recordingAt
  const frames = (seconds * 1000) / frameMs
  const encoded: Recording[] = []
  for (let start = 0; start < recordings; start++) {
    const frameAt = await encodeFrames(framesOf(speech, start), frames, encoding)
    encoded.push({ start, frameAt })
  }
  return (session) => encoded[session % recordings] ?? recordingAt(session)
}

type Run = {
  readonly speech: Speech
  readonly recordingOf: (session: number) => Recording
  readonly report: (report: SpeechReport) => void
}

function runClients(job: SpeechJob, { speech, recordingOf, report }: Run): void {
  const clients: Client[] = []
  const startedMs = performance.now()
  for (let number = 0; number < job.sessions; number++) {
    const open = () => clients.push(new Client(job, number, speech, recordingOf(number)))
    setTimeout(open, (number * job.rampMs) / job.sessions)
  }
  const finish = () => report(makeReport(clients, performance.now() - startedMs))
  setInterval(() => {
    const nowMs = performance.now()
    for (const client of clients) client.tick(nowMs)
    const isOver = clients.length === job.sessions && clients.every((client) => client.isOver)
    const isPast = nowMs - startedMs > (job.mode === 'flood' ? job.seconds * 1000 : job.deadlineMs)
    if (!isOver && !isPast) return
    if (job.mode === 'live') for (const client of clients) client.fail('it has not ended')
    for (const client of clients) client.leave()
    finish()
  }, tickMs)
  setInterval(() => printProgress(clients, performance.now() - startedMs), job.progressMs)
}

function printProgress(clients: readonly Client[], elapsedMs: number): void {
  const line: SpeechProgress = {
    progress: {
      elapsedMs: Math.round(elapsedMs),
      sessionsOpen: clients.filter(({ isOver }) => !isOver).length,
      framesSent: tally.framesSent,
      finals: tally.finals,
      faults: tally.faults,
    },
  }
  console.error(JSON.stringify(line))
}

function makeReport(clients: readonly Client[], elapsedMs: number): SpeechReport {
  const { finalMs, latenessMs, closeCodes, ...counts } = tally
  const heard = clients.map((client) => client.heardMs()).sort((one, other) => one - other)
  return {
    elapsedMs,
    ...counts,
    words: clients.reduce((sum, client) => sum + client.words(), 0),
    closeCodes: Object.fromEntries(closeCodes),
    finalMs: finalMs.quantiles(),
    latenessMs: latenessMs.quantiles(),
    heardMs: [heard[0] ?? 0, heard[Math.floor(heard.length / 2)] ?? 0, heard.at(-1) ?? 0],
  }
}

serveJob(runJob)
