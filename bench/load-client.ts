/**
 * A load client in its own process: plain TCP, HTTP/1.1 read by hand, every event checked. It takes
 * one line of JSON on standard input, a `LoadJob`, and prints one, a `LoadReport`. It ends when the
 * job does, at the deadline of the job, or when its standard input does.
 */
import type { Socket } from 'bun'
import { parseJson } from '#lib/json.ts'
import { AnswerReader } from './support/answer-reader.ts'
import { Histogram } from './support/histogram.ts'
import type { LoadJob, LoadProgress, LoadReport } from './support/load-job.ts'
import { expectedAnswer, requestBytes, wholeAnswer } from './support/load-request.ts'
import { type Plan, wallClockMs } from './support/plan.ts'
import { treeUsage } from './support/process-tree.ts'
import { type Faults, noFaults, noteFault, StreamCheck } from './support/stream-check.ts'

/** Everything that is counted; one for the whole job. */
type Tally = {
  readonly faults: Faults
  readonly firstTokenMs: Histogram
  readonly latenessMs: Histogram
  readonly gapMs: Histogram
  requests: number
  events: number
  tokens: number
  heartbeats: number
  lateTokens: number
  streamsOpen: number
  inWindow: boolean
}

type Reading = { atMs: number; requests: number; tokens: number; cpuMs: number | null }

function runJob(job: LoadJob, report: (report: LoadReport) => void): void {
  const tally: Tally = {
    faults: noFaults(),
    firstTokenMs: new Histogram(),
    latenessMs: new Histogram(),
    gapMs: new Histogram(),
    requests: 0,
    events: 0,
    tokens: 0,
    heartbeats: 0,
    lateTokens: 0,
    streamsOpen: 0,
    inWindow: false,
  }
  const startedMs = performance.now()
  const take = (): Reading => ({
    atMs: performance.now(),
    requests: tally.requests,
    tokens: tally.tokens,
    cpuMs: job.measurePid === null ? null : treeUsage(job.measurePid).cpuMs,
  })
  let opened: Reading | undefined
  let closed: Reading | undefined
  let running = job.connections
  const finish = () => {
    const first = opened ?? take()
    report(makeReport(tally, { startedMs, opened: first, closed: closed ?? take() }))
  }
  const onConnectionEnd = () => {
    running--
    if (running === 0 && closed !== undefined) finish()
  }

  setTimeout(() => {
    opened = take()
    tally.inWindow = true
  }, job.windowStartMs)
  setTimeout(() => {
    tally.inWindow = false
    closed = take()
    if (running === 0) finish()
  }, job.windowStartMs + job.windowMs)
  setTimeout(() => {
    tally.faults.failed += running
    noteFault(tally.faults, `${running} connections had not ended at the deadline`)
    finish()
  }, job.deadlineMs)
  if (job.progressMs > 0) setInterval(() => printProgress(tally, startedMs), job.progressMs)

  const mayRepeat = () => job.mode === 'repeat' && closed === undefined
  for (let number = 0; number < job.connections; number++) {
    const plan = job.plans[number % job.plans.length]
    if (plan === undefined) throw new Error('the job has no plan')
    const options = { job, plan, tally, mayRepeat, onEnd: onConnectionEnd }
    setTimeout(() => connect(options), (number * job.rampMs) / job.connections)
  }
}

type ConnectionOptions = {
  readonly job: LoadJob
  readonly plan: Plan
  readonly tally: Tally
  readonly mayRepeat: () => boolean
  readonly onEnd: () => void
}

/** One connection that sends request after request; after a failure it is not opened again. */
class Connection {
  readonly #options: ConnectionOptions
  readonly #request: Buffer
  readonly #reader: AnswerReader
  #socket: Socket<Connection> | undefined
  #status = 0
  #body = ''
  #check: StreamCheck | undefined
  #nowMs = 0
  #sentMs = 0
  #lastTokenMs = 0
  #ended = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#request = requestBytes(options.job, options.plan)
    this.#reader = new AnswerReader({
      onHead: (status) => this.#onHead(status),
      onBody: (text) => this.#onBody(text),
      onEnd: () => this.#onAnswerEnd(),
    })
  }

  open(socket: Socket<Connection>): void {
    this.#socket = socket
    socket.setNoDelay(true)
    this.#send(socket)
  }

  /** The time of arrival is taken once for all that came in one read. */
  read(bytes: Buffer): void {
    this.#nowMs = wallClockMs()
    this.#reader.push(bytes)
  }

  fail(sentence: string): void {
    if (this.#ended) return
    const { tally } = this.#options
    tally.faults.failed++
    noteFault(tally.faults, sentence)
    this.#check?.end()
    this.#end()
  }

  #send(socket: Socket<Connection>): void {
    const { job, plan, tally } = this.#options
    this.#check = undefined
    this.#body = ''
    this.#lastTokenMs = 0
    if (job.stream) {
      this.#check = new StreamCheck({
        protocol: job.protocol,
        plan,
        faults: tally.faults,
        handler: {
          onToken: (latenessMs) => this.#onToken(latenessMs),
          onHeartbeat: () => {
            tally.heartbeats++
          },
        },
      })
    }
    tally.streamsOpen++
    this.#sentMs = wallClockMs()
    if (socket.write(this.#request) !== this.#request.length) this.fail('the request did not fit')
  }

  #onHead(status: number): void {
    this.#status = status
  }

  #onBody(text: string): void {
    if (this.#check === undefined || this.#status !== 200) this.#body += text
    else this.#check.push(text, this.#nowMs)
  }

  #onToken(latenessMs: number): void {
    const { job, tally } = this.#options
    const lastMs = this.#lastTokenMs
    this.#lastTokenMs = this.#nowMs
    tally.tokens++
    if (latenessMs > job.lateMs) tally.lateTokens++
    if (!tally.inWindow) return
    tally.latenessMs.record(latenessMs)
    if (lastMs === 0) tally.firstTokenMs.record(this.#nowMs - this.#sentMs)
    else tally.gapMs.record(this.#nowMs - lastMs)
  }

  #onAnswerEnd(): void {
    const { tally, mayRepeat } = this.#options
    if (this.#status !== 200) {
      this.fail(`status ${this.#status}: ${this.#body}`)
      return
    }
    if (this.#check === undefined) this.#onWholeAnswer()
    else {
      this.#check.end()
      tally.events += this.#check.events
      this.#check = undefined
    }
    tally.requests++
    tally.streamsOpen--
    if (mayRepeat() && this.#socket !== undefined) this.#send(this.#socket)
    else this.#end()
  }

  #onWholeAnswer(): void {
    const { job, plan, tally } = this.#options
    if (tally.inWindow) tally.firstTokenMs.record(this.#nowMs - this.#sentMs)
    const text = wholeAnswer(job.protocol, parseJson(this.#body))
    if (text === expectedAnswer(plan, text)) return
    tally.faults.changed++
    noteFault(tally.faults, `another text than was sent: ${this.#body}`)
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#socket?.end()
    this.#options.onEnd()
  }
}

function connect(options: ConnectionOptions): void {
  const connection = new Connection(options)
  Bun.connect<Connection>({
    hostname: '127.0.0.1',
    port: options.job.port,
    data: connection,
    socket: {
      open: (socket) => connection.open(socket),
      data: (_socket, bytes) => connection.read(bytes),
      close: () => connection.fail('the server closed the connection'),
      error: (_socket, error) => connection.fail(String(error)),
    },
  }).catch((error: unknown) => connection.fail(String(error)))
}

function printProgress(tally: Tally, startedMs: number): void {
  const line: LoadProgress = {
    progress: {
      elapsedMs: Math.round(performance.now() - startedMs),
      streamsOpen: tally.streamsOpen,
      tokens: tally.tokens,
      heartbeats: tally.heartbeats,
      faults: tally.faults,
    },
  }
  console.error(JSON.stringify(line))
}

function makeReport(
  tally: Tally,
  readings: { startedMs: number; opened: Reading; closed: Reading },
): LoadReport {
  const { startedMs, opened, closed } = readings
  const { requests, events, tokens, heartbeats, lateTokens, faults } = tally
  return {
    elapsedMs: performance.now() - startedMs,
    requests,
    events,
    tokens,
    heartbeats,
    lateTokens,
    faults,
    window: {
      ms: closed.atMs - opened.atMs,
      requests: closed.requests - opened.requests,
      tokens: closed.tokens - opened.tokens,
      cpuMs: opened.cpuMs === null ? null : (closed.cpuMs ?? 0) - opened.cpuMs,
    },
    firstTokenMs: tally.firstTokenMs.quantiles(),
    latenessMs: tally.latenessMs.quantiles(),
    gapMs: tally.gapMs.quantiles(),
  }
}

let line = ''
let started = false
process.stdin.setEncoding('utf8')
process.stdin.on('data', (text: string) => {
  line += text
  if (started || !line.includes('\n')) return
  started = true
  // The parent process writes nothing but a LoadJob here.
  runJob(JSON.parse(line) as LoadJob, (report) => {
    process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0))
  })
})
process.stdin.on('end', () => process.exit(1))
