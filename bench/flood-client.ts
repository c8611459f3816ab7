/**
 * Sends requests of one kind on all connections as fast as possible, in a process of its own.
 * Reads a `FloodJob` and prints a `FloodReport`.
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'bun'
import { createApiKey } from '#auth/key-format.ts'
import { cpuBetween, readCpu } from './support/cpu-use.ts'
import type { FloodJob, FloodReport } from './support/flood-job.ts'
import { Histogram } from './support/histogram.ts'
import { serveJob } from './support/job-process.ts'
import { modelName } from './support/plan.ts'
import { ResponseReader } from './support/response-reader.ts'
import { noFaults, noteFailure } from './support/stream-check.ts'

/** The request, and the expected response. */
type Question = {
  readonly path: string
  /** The credential header of a request. */
  readonly credential: () => string
  readonly status: number
  readonly says: string
  /** Whether the request may need the database, which may be unavailable. */
  readonly mayBeUnavailable?: true
}

const signatureBytes = 32

function questionOf({ caller, bearer, apiKey }: FloodJob): Question {
  const key = (make: () => string) => () => `X-Api-Key: ${make()}`
  const token = (make: () => string) => () => `Authorization: Bearer ${make()}`
  const path = `/v1/models/${modelName}`
  const badKey = { path, status: 401, says: '"invalid_api_key"' }
  const badToken = { path, status: 401, says: '"invalid_token"' }
  const good = { path, status: 200, says: `"${modelName}"` }
  const unknownKey = createApiKey()
  const claims = bearer.slice(0, bearer.lastIndexOf('.'))
  switch (caller) {
    case '/livez, no credential':
      return { path: '/livez', status: 200, says: '"ok"', credential: () => 'X-Nobody: 1' }
    case 'wrong checksum':
      return { ...badKey, credential: key(keyWithWrongChecksum) }
    case 'same unknown key':
      return { ...badKey, credential: key(() => unknownKey) }
    case 'new unknown key each time':
      return { ...badKey, credential: key(createApiKey), mayBeUnavailable: true }
    case 'broken token':
      return { ...badToken, credential: token(() => randomBytes(signatureBytes).toString('hex')) }
    case 'wrong signature':
      return { ...badToken, credential: token(() => `${claims}.${randomSignature()}`) }
    case 'valid key':
      return { ...good, credential: key(() => apiKey) }
    case 'valid token':
      return { ...good, credential: token(() => bearer) }
  }
}

function keyWithWrongChecksum(): string {
  const key = createApiKey()
  return `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
}

function randomSignature(): string {
  return randomBytes(signatureBytes).toString('base64url')
}

/** Counters of the whole job. */
type Tally = {
  readonly responseMs: Histogram
  readonly faults: FloodReport['faults']
  responses: number
  unavailable: number
  isInWindow: boolean
  isOver: boolean
}

/** One connection that repeats requests until the job ends; it is not reopened after a failure. */
class Caller {
  readonly #question: Question
  readonly #tally: Tally
  readonly #host: string
  readonly #reader: ResponseReader
  #socket: Socket<Caller> | undefined
  #status = 0
  #body = ''
  #askedMs = 0

  constructor(question: Question, options: { port: number; tally: Tally }) {
    this.#question = question
    this.#tally = options.tally
    this.#host = `127.0.0.1:${options.port}`
    this.#reader = new ResponseReader({
      onHead: (status) => {
        this.#status = status
        this.#body = ''
      },
      onBody: (text) => {
        this.#body += text
      },
      onEnd: () => this.#onResponse(),
    })
  }

  open(socket: Socket<Caller>): void {
    this.#socket = socket
    socket.setNoDelay(true)
    this.#ask(socket)
  }

  read(bytes: Buffer): void {
    this.#reader.push(bytes)
  }

  fail(sentence: string): void {
    const { faults, isOver } = this.#tally
    if (!isOver) noteFailure(faults, sentence)
  }

  #ask(socket: Socket<Caller>): void {
    const { path, credential } = this.#question
    this.#askedMs = performance.now()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n${credential()}\r\n\r\n`)
  }

  #onResponse(): void {
    const tally = this.#tally
    const { status, says, mayBeUnavailable } = this.#question
    const isUnavailable = this.#status === 503 && mayBeUnavailable === true
    const isRight = this.#status === status && this.#body.includes(says)
    if (!isRight && !isUnavailable) this.fail(`status ${this.#status}: ${this.#body}`)
    if (tally.isInWindow) {
      tally.responses++
      tally.responseMs.record(performance.now() - this.#askedMs)
      if (isUnavailable) tally.unavailable++
    }
    if (this.#socket === undefined) return
    if (tally.isOver) this.#socket.end()
    else this.#ask(this.#socket)
  }
}

async function run(job: FloodJob): Promise<FloodReport> {
  const tally: Tally = {
    responseMs: new Histogram(),
    faults: noFaults(),
    responses: 0,
    unavailable: 0,
    isInWindow: false,
    isOver: false,
  }
  const question = questionOf(job)
  for (let number = 0; number < job.connections; number++) {
    void connect(new Caller(question, { port: job.port, tally }), job.port)
  }
  await Bun.sleep(job.windowStartMs)
  const startedMs = performance.now()
  const cpuBefore = readCpu(job.measurePid)
  tally.isInWindow = true
  await Bun.sleep(job.windowMs)
  tally.isInWindow = false
  tally.isOver = true
  const cpu = cpuBetween(cpuBefore, readCpu(job.measurePid))
  const windowMs = performance.now() - startedMs
  const { responses, unavailable, faults } = tally
  const responseMs = tally.responseMs.quantiles()
  return { windowMs, responses, cpu, responseMs, unavailable, faults }
}

async function connect(caller: Caller, port: number): Promise<void> {
  try {
    await Bun.connect<Caller>({
      hostname: '127.0.0.1',
      port,
      data: caller,
      socket: {
        open: (socket) => caller.open(socket),
        data: (_socket, bytes) => caller.read(bytes),
        close: () => caller.fail('the server closed the connection'),
        error: (_socket, error) => caller.fail(String(error)),
      },
    })
  } catch (error) {
    caller.fail(String(error))
  }
}

serveJob(run)
