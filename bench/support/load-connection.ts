import type { Socket } from 'bun'
import { parseJson } from '#lib/json.ts'
import { type LoadJob, lateMs } from './load-job.ts'
import { expectedText, requestBytes, responseText } from './load-request.ts'
import type { Tally } from './load-tally.ts'
import { modelName, type Plan, wallClockMs } from './plan.ts'
import { ResponseReader } from './response-reader.ts'
import { noteFailure, noteFault, StreamCheck } from './stream-check.ts'

export type ConnectionOptions = {
  readonly job: LoadJob
  readonly plan: Plan
  readonly tally: Tally
  /** Whether another request follows. */
  readonly mayRepeat: () => boolean
  readonly onEnd: () => void
}

/** Opens a connection to the job's port and sends as the job says. */
export function connect(options: ConnectionOptions): LoadConnection {
  const connection = new LoadConnection(options)
  Bun.connect<LoadConnection>({
    hostname: '127.0.0.1',
    port: options.job.port,
    data: connection,
    socket: {
      open: (socket) => connection.open(socket),
      data: (_socket, bytes) => connection.read(bytes),
      drain: () => connection.write(),
      close: () => connection.fail('the server closed the connection'),
      error: (_socket, error) => connection.fail(String(error)),
    },
  }).catch((error: unknown) => connection.fail(String(error)))
  return connection
}

/** One connection that sends consecutive requests; it is not reopened after a failure. */
export class LoadConnection {
  readonly #options: ConnectionOptions
  readonly #request: Buffer
  readonly #reader: ResponseReader
  #socket: Socket<LoadConnection> | undefined
  #unsent: Buffer = Buffer.alloc(0)
  #status = 0
  #body = ''
  #check: StreamCheck | undefined
  #nowMs = 0
  #sentMs = 0
  #lastTokenMs = 0
  #lastLatenessMs = 0
  #ended = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#request = requestBytes(options.job, options.plan)
    this.#reader = new ResponseReader({
      onHead: (status) => {
        this.#status = status
      },
      onBody: (text) => this.#onBody(text),
      onEnd: () => this.#onResponseEnd(),
    })
  }

  open(socket: Socket<LoadConnection>): void {
    this.#socket = socket
    if (this.#ended) {
      socket.end()
      return
    }
    socket.setNoDelay(true)
    this.#send()
  }

  /** All data of one read share one arrival time. */
  read(bytes: Buffer): void {
    if (this.#ended) return
    this.#nowMs = wallClockMs()
    this.#reader.push(bytes)
  }

  /** Sends as much of the request as the socket accepts; continues on drain. */
  write(): void {
    if (this.#unsent.length === 0 || this.#socket === undefined) return
    this.#unsent = this.#unsent.subarray(Math.max(0, this.#socket.write(this.#unsent)))
  }

  fail(sentence: string): void {
    if (this.#ended) return
    const { tally } = this.#options
    noteFailure(tally.faults, sentence)
    this.#check?.end()
    this.#end()
  }

  /** Disconnects in the middle of a response; what arrived was checked. */
  leave(): void {
    if (this.#ended) return
    const { tally } = this.#options
    tally.events += this.#check?.events ?? 0
    tally.streamsOpen--
    this.#end()
  }

  #send(): void {
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
    this.#unsent = this.#request
    this.write()
  }

  #onBody(text: string): void {
    if (this.#check === undefined || this.#status !== 200) this.#body += text
    else this.#check.push(text, this.#nowMs)
  }

  #onToken(latenessMs: number): void {
    const { tally } = this.#options
    const lastMs = this.#lastTokenMs
    const beyondMs = latenessMs - this.#lastLatenessMs
    this.#lastTokenMs = this.#nowMs
    this.#lastLatenessMs = latenessMs
    tally.tokens++
    if (lastMs === 0) {
      tally.begun++
      tally.lastBegunAtMs = performance.now()
    }
    if (latenessMs > lateMs) tally.lateTokens++
    if (!tally.inWindow) return
    tally.latenessMs.record(latenessMs)
    if (lastMs === 0) tally.firstTokenMs.record(this.#nowMs - this.#sentMs)
    else {
      tally.gapMs.record(this.#nowMs - lastMs)
      tally.gapBeyondMs.record(Math.max(0, beyondMs))
    }
  }

  #onResponseEnd(): void {
    const { job, tally, mayRepeat } = this.#options
    if (this.#status === job.refusalStatus) {
      tally.refused++
      tally.streamsOpen--
      this.#end()
      return
    }
    if (this.#status !== 200) {
      this.fail(`status ${this.#status}: ${this.#body}`)
      return
    }
    if (this.#check === undefined) this.#onUnstreamedResponse()
    else {
      this.#check.end()
      tally.events += this.#check.events
      this.#check = undefined
    }
    if (tally.inWindow) tally.wholeMs.record(this.#nowMs - this.#sentMs)
    tally.requests++
    tally.streamsOpen--
    if (mayRepeat()) this.#send()
    else this.#end()
  }

  #onUnstreamedResponse(): void {
    const { job, plan, tally } = this.#options
    if (tally.inWindow) tally.firstTokenMs.record(this.#nowMs - this.#sentMs)
    if (job.listsModels && this.#body.includes(modelName)) return
    const text = responseText(job.protocol, parseJson(this.#body))
    if (text === expectedText(plan, text)) return
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
