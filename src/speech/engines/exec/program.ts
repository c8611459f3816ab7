import type { EngineConfig } from '#config/schema.ts'
import { orAfter } from '#lib/time-limit.ts'
import { EngineError } from '#speech/engine.ts'
import type { EngineDeps } from '#speech/engines/engine-kind.ts'
import type { Log } from '#telemetry/log.ts'
import { ProgramInput, readLines } from './program-io.ts'
import { type ExecMessage, readMessage } from './protocol.ts'

/** Called in order; never after `failed` or `exited`. */
export type ProgramListener = {
  /** Null: a line of another type, which only shows that the program works. */
  received(message: ExecMessage | null): void
  failed(error: EngineError): void
  /** The program exited by itself; all of its output was passed on. */
  exited(code: number | null): void
}

/** A longer line is not a message. */
const lineCharsMax = 262_144
const stderrLineCharsMax = 500
/** Logged lines of one program. */
const stderrLinesMax = 100
/** How long the program may take to exit after it is done, and after SIGTERM. */
const graceMs = 2_000
/** Child processes may keep the output open after the program exited. */
const outputAfterExitMs = 1_000

/** One process from start to exit. It serves one session; the caller stops or releases it. */
export class Program {
  /** Resolves when it accepts audio; rejects with an `EngineError`. */
  readonly ready: Promise<void>
  /** Resolves when the process has exited and its output was read. */
  readonly gone: Promise<void>
  readonly #engineName: string
  readonly #log: Log
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  readonly #input: ProgramInput
  readonly #readiness = Promise.withResolvers<void>()
  readonly #readyTimer: Timer
  #phase: 'starting' | 'idle' | 'serving' | 'over' = 'starting'
  #isTerminating = false
  #listener: ProgramListener | null = null
  #stopTimer: Timer | undefined

  /** Throws an `EngineError` if the program cannot be started. */
  constructor({ name, command, openMs }: EngineConfig, { environment, log }: EngineDeps) {
    this.#engineName = name
    this.#log = log
    this.#child = spawn(command, environment)
    this.#input = new ProgramInput(this.#child.stdin, () => {
      this.#fail(new EngineError('broken', 'the program does not read its audio'))
    })
    this.ready = this.#readiness.promise
    // It may not be awaited.
    this.ready.catch(() => {})
    this.#readyTimer = setTimeout(() => {
      this.#fail(new EngineError('unreachable', `not ready within ${openMs} ms`))
    }, openMs)
    this.gone = this.#run()
  }

  get isReady(): boolean {
    return this.#phase === 'idle'
  }

  /** Assigns it to a session. Throws an `EngineError` if it failed while idle. */
  serve(listener: ProgramListener): void {
    if (this.#phase !== 'idle') throw new EngineError('broken', 'the program failed while idle')
    this.#phase = 'serving'
    this.#listener = listener
  }

  write(bytes: Uint8Array): void {
    this.#input.write(bytes)
  }

  endInput(): void {
    this.#input.end()
  }

  /** Its session has ended; it may exit by itself within the grace period. */
  release(): void {
    this.#listener = null
    this.#input.end()
    this.#terminateAfterGrace()
  }

  /** Terminates it; its further output is ignored. */
  stop(): Promise<void> {
    this.#settle(new EngineError('unreachable', 'the program was stopped'))
    this.#listener = null
    this.#terminate()
    return this.gone
  }

  async #run(): Promise<void> {
    const { stdout, stderr, exited } = this.#child
    const output = this.#readOutput(stdout)
    // Logging failures do not affect the session.
    this.#logErrors(stderr).catch(() => {})
    await exited
    // Its own children may have outlived it.
    this.#kill('SIGKILL')
    await orAfter(output, outputAfterExitMs, undefined)
    clearTimeout(this.#stopTimer)
    this.#input.close()
    this.#onExit()
  }

  async #readOutput(stdout: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      await readLines(stdout, lineCharsMax, (line, isComplete) => this.#onLine(line, isComplete))
    } catch (cause) {
      const message = 'the output of the program could not be read'
      this.#fail(new EngineError('broken', message, { cause }))
    }
    // A closed stdout means the program will send no more results.
    this.#terminateAfterGrace()
  }

  #onExit(): void {
    const { exitCode, signalCode } = this.#child
    const how = signalCode === null ? `code ${exitCode}` : `signal ${signalCode}`
    const listener = this.#listener
    this.#settle(new EngineError('unreachable', `exited with ${how} before it was ready`))
    this.#listener = null
    listener?.exited(exitCode)
  }

  #onLine(line: string, isComplete: boolean): void {
    if (this.#phase === 'over') return
    try {
      if (!isComplete) throw new EngineError('broken', 'the program printed too long a line')
      this.#onMessage(readMessage(line))
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      this.#fail(error)
    }
  }

  #onMessage(message: ExecMessage | null): void {
    if (this.#phase === 'serving') this.#listener?.received(message)
    if (message?.type !== 'ready' || this.#phase !== 'starting') return
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

  #settle(error: EngineError): void {
    this.#phase = 'over'
    clearTimeout(this.#readyTimer)
    this.#readiness.reject(error)
  }

  #terminateAfterGrace(): void {
    this.#stopTimer ??= setTimeout(() => this.#terminate(), graceMs)
  }

  #terminate(): void {
    const hasExited = this.#child.exitCode !== null || this.#child.signalCode !== null
    if (this.#isTerminating || hasExited) return
    this.#isTerminating = true
    clearTimeout(this.#stopTimer)
    this.#input.close()
    this.#kill('SIGTERM')
    this.#stopTimer = setTimeout(() => this.#kill('SIGKILL'), graceMs)
  }

  /** Signals the program and its children: a shell does not pass signals on. */
  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    try {
      process.kill(-this.#child.pid, signal)
    } catch {
      // The whole group has exited.
    }
  }

  async #logErrors(stderr: AsyncIterable<Uint8Array>): Promise<void> {
    const { pid } = this.#child
    let lines = 0
    await readLines(stderr, stderrLineCharsMax, (line) => {
      lines += 1
      if (lines > stderrLinesMax + 1) return
      const text = lines > stderrLinesMax ? 'further lines are not logged' : line
      this.#log.info('speech engine stderr', { engine: this.#engineName, pid, line: text })
    })
  }
}

function spawn(command: readonly string[], environment: EngineDeps['environment']) {
  try {
    return Bun.spawn([...command], {
      env: { ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
      // Its own process group, which a signal to the server's group does not reach: at shutdown it
      // still returns the last finals.
      detached: true,
    })
  } catch (error) {
    throw new EngineError('unreachable', 'the program could not be started', { cause: error })
  }
}
