import { orAfter } from '#lib/time-limit.ts'
import { EngineError } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { createInput, type Input } from './input.ts'
import { readLines } from './lines.ts'
import { type ExecMessage, readMessage } from './messages.ts'

export type ProgramOptions = {
  readonly engineName: string
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  /** How long it may take until it says that it is ready. */
  readonly openMs: number
  readonly log: Log
}

/** Told in order; after `failed` or `exited`, nothing more. */
export type ProgramListener = {
  message(message: ExecMessage): void
  failed(error: EngineError): void
  /** It ended by itself, and all that it had printed was told. */
  exited(code: number | null): void
}

/** A line that is longer is no message of ours. */
const lineCharsMax = 262_144
const stderrLineCharsMax = 500
/** What one program may write into the log. */
const stderrLinesMax = 100
/** How long it may take to end by itself when it is done, or when it was told to end. */
const graceMs = 2_000
/** Output may be held open by a program's own children. */
const outputAfterExitMs = 1_000

type Phase = 'starting' | 'idle' | 'serving' | 'over'

/** One process from its start to its end. It serves one session; whoever drops it stops it. */
export class Program {
  /** Resolves once it may be given audio; rejects with an `EngineError`. */
  readonly ready: Promise<void>
  /** Resolves when nothing of it is left. */
  readonly gone: Promise<void>
  readonly #options: ProgramOptions
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  readonly #input: Input
  readonly #readiness = Promise.withResolvers<void>()
  readonly #readyTimer: ReturnType<typeof setTimeout>
  #phase: Phase = 'starting'
  #isTerminating = false
  #listener: ProgramListener | null = null
  #stopTimer: ReturnType<typeof setTimeout> | undefined

  /** Throws an `EngineError` where there is no such program. */
  constructor(options: ProgramOptions) {
    this.#options = options
    this.#child = spawn(options)
    this.#input = createInput(this.#child.stdin, () => {
      this.#fail(new EngineError('broken', 'the program does not take its audio'))
    })
    this.ready = this.#readiness.promise
    // Nobody may be waiting for it.
    this.ready.catch(() => {})
    this.#readyTimer = setTimeout(() => {
      this.#fail(new EngineError('unreachable', `not ready within ${options.openMs} ms`))
    }, options.openMs)
    this.gone = this.#live()
  }

  get isReady(): boolean {
    return this.#phase === 'idle'
  }

  /** Gives it to a session. Throws an `EngineError` where it has broken since it was ready. */
  serve(listener: ProgramListener): void {
    if (this.#phase !== 'idle') throw new EngineError('broken', 'the program broke off once ready')
    this.#phase = 'serving'
    this.#listener = listener
  }

  write(bytes: Uint8Array): void {
    this.#input.write(bytes)
  }

  endInput(): void {
    this.#input.end()
  }

  /** Nothing of it is wanted any more; it may end by itself, for a while. */
  release(): void {
    this.#listener = null
    this.#input.end()
    this.#terminateLater()
  }

  /** Ends it now; what it says is not heard any more. */
  stop(): Promise<void> {
    this.#settle(new EngineError('unreachable', 'the program was stopped'))
    this.#listener = null
    this.#terminate()
    return this.gone
  }

  async #live(): Promise<void> {
    const { stdout, stderr, exited } = this.#child
    const output = this.#readOutput(stdout)
    // What cannot be logged is lost; its session goes on.
    this.#logErrors(stderr).catch(() => {})
    await exited
    await orAfter(output, outputAfterExitMs, undefined)
    clearTimeout(this.#stopTimer)
    this.#input.close()
    this.#tellExit()
  }

  async #readOutput(stdout: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      await readLines(stdout, lineCharsMax, (line, isWhole) => this.#read(line, isWhole))
    } catch (cause) {
      this.#fail(
        new EngineError('broken', 'what the program printed was not understood', { cause }),
      )
    }
    // Who closes its output has nothing more to say.
    this.#terminateLater()
  }

  #tellExit(): void {
    const { exitCode, signalCode } = this.#child
    const how = signalCode === null ? `code ${exitCode}` : `signal ${signalCode}`
    const listener = this.#listener
    this.#settle(new EngineError('unreachable', `ended with ${how} before it was ready`))
    this.#listener = null
    listener?.exited(exitCode)
  }

  #read(line: string, isWhole: boolean): void {
    if (this.#phase === 'over') return
    try {
      if (!isWhole) throw new EngineError('broken', 'the program printed a line without end')
      this.#hear(readMessage(line))
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      this.#fail(error)
    }
  }

  #hear(message: ExecMessage): void {
    if (message.type === 'error') throw new EngineError(message.kind, message.message)
    if (this.#phase === 'serving') this.#listener?.message(message)
    if (message.type !== 'ready' || this.#phase !== 'starting') return
    this.#phase = 'idle'
    clearTimeout(this.#readyTimer)
    this.#readiness.resolve()
  }

  #fail(error: EngineError): void {
    const listener = this.#listener
    this.#settle(error)
    void this.stop()
    listener?.failed(error)
  }

  /** From here on it is of no use to anybody. */
  #settle(error: EngineError): void {
    this.#phase = 'over'
    clearTimeout(this.#readyTimer)
    this.#readiness.reject(error)
  }

  #terminateLater(): void {
    this.#stopTimer ??= setTimeout(() => this.#terminate(), graceMs)
  }

  #terminate(): void {
    if (this.#isTerminating || this.#hasExited()) return
    this.#isTerminating = true
    clearTimeout(this.#stopTimer)
    this.#input.close()
    this.#child.kill('SIGTERM')
    this.#stopTimer = setTimeout(() => this.#child.kill('SIGKILL'), graceMs)
  }

  #hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  async #logErrors(stderr: AsyncIterable<Uint8Array>): Promise<void> {
    const { log, engineName } = this.#options
    let lines = 0
    await readLines(stderr, stderrLineCharsMax, (line) => {
      lines += 1
      if (lines > stderrLinesMax + 1) return
      const isCapped = lines > stderrLinesMax
      log.info('a speech engine wrote to its error output', {
        engine: engineName,
        pid: this.#child.pid,
        line: isCapped ? 'more than may be logged of one program' : line,
      })
    })
  }
}

function spawn({ command, environment }: ProgramOptions) {
  try {
    return Bun.spawn([...command], { env: { ...environment }, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    throw new EngineError('unreachable', 'the program could not be started', { cause: error })
  }
}
