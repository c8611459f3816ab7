import { logStderr } from '#inference/local-models/process-stderr.ts'
import { AppError } from '#lib/errors.ts'
import { roleCommand } from '#lib/own-program.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { ModelCall } from './model-call.ts'
import type { FromChild, LoadFault, LoadOptions, Prompt, ToChild } from './wire.ts'

export type LlamaLog = Pick<Log, 'info' | 'warn' | 'error'>

export type ModelProcessOptions = {
  /** For the log. */
  readonly name: string
  readonly load: LoadOptions
  readonly loadMs: number
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: LlamaLog
}

/** How long a cancelled call may take to stop before the process is killed. */
const releaseMs = 30_000
/** How long the last lines of a process that exited are awaited. */
const outputAfterExitMs = 1_000
/** The `Retry-After` when memory is insufficient. */
const memoryRetryS = 60

/** A child process that runs one model. The owner stops it. */
export class ModelProcess {
  /** Resolves with the context size; rejects with an `AppError` if the model cannot be loaded. */
  readonly loaded: Promise<{ contextTokens: number }>
  /** Resolves after the exit, which is expected only after `stop`, not after a failed load. */
  readonly exited: Promise<{ isExpected: boolean }>
  readonly #options: ModelProcessOptions
  readonly #child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  readonly #loading = Promise.withResolvers<{ contextTokens: number }>()
  readonly #loadTimer: ReturnType<typeof setTimeout>
  readonly #calls = new Map<number, ModelCall>()
  #nextCallId = 0
  #isStopped = false
  /** The reason of its end was logged or reported. */
  #isFailureReported = false

  constructor(options: ModelProcessOptions) {
    this.#options = options
    this.loaded = this.#loading.promise
    // There may be no caller that awaits it.
    this.loaded.catch(() => {})
    this.#child = Bun.spawn(roleCommand('run-model'), {
      // Outside the project, so no developer configuration applies.
      cwd: '/',
      env: { ...options.environment },
      stdio: ['ignore', 'ignore', 'pipe'],
      ipc: (message: FromChild) => this.#handleMessage(message),
    })
    this.#loadTimer = setTimeout(() => this.#abandonLoad(loadTimeout(options)), options.loadMs)
    this.exited = this.#untilExit()
    this.#send({ type: 'load', ...options.load })
  }

  get pid(): number {
    return this.#child.pid
  }

  /** Requires that the model is loaded. */
  startCall(type: 'generate' | 'count', prompt: Prompt): ModelCall {
    const id = this.#nextCallId++
    const call = new ModelCall({
      acknowledge: (pieces) => this.#send({ type: 'acknowledge', callId: id, pieces }),
      stop: () => this.#send({ type: 'stop', callId: id }),
      onStuck: () => this.#killUnresponsive(),
      releaseMs,
    })
    if (this.#hasEnded()) {
      call.fail(processLost())
      return call
    }
    this.#calls.set(id, call)
    this.#send({ type, callId: id, prompt })
    return call
  }

  /** Kills the process; running calls fail. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#child.kill('SIGKILL')
    await this.exited
  }

  #handleMessage(message: FromChild): void {
    switch (message.type) {
      case 'loaded':
        clearTimeout(this.#loadTimer)
        this.#loading.resolve({ contextTokens: message.contextTokens })
        return
      case 'load-failed':
        this.#options.log.warn('model load failed', {
          model: this.#options.name,
          reason: message.detail,
        })
        this.#abandonLoad(loadError(message.reason))
        return
      case 'begun':
        this.#calls.get(message.callId)?.begin()
        return
      case 'piece':
        this.#calls.get(message.callId)?.add(message.piece)
        return
      case 'ended':
        this.#calls.get(message.callId)?.end(message.ending)
        this.#calls.delete(message.callId)
    }
  }

  async #untilExit(): Promise<{ isExpected: boolean }> {
    const { log, name } = this.#options
    const output = logStderr(this.#child.stderr, this.#options)
    await this.#child.exited
    clearTimeout(this.#loadTimer)
    await orAfter(output, outputAfterExitMs, undefined)
    const { exitCode, signalCode } = this.#child
    const how = signalCode === null ? `code ${exitCode}` : `signal ${signalCode}`
    const isKnown = this.#isStopped || this.#isFailureReported
    if (!isKnown) log.error('model process exited', { model: name, how })
    this.#loading.reject(processLost())
    for (const call of this.#calls.values()) call.fail(processLost())
    this.#calls.clear()
    return { isExpected: this.#isStopped }
  }

  #send(message: ToChild): void {
    if (!this.#hasEnded()) this.#child.send(message)
  }

  #abandonLoad(error: AppError): void {
    this.#isFailureReported = true
    this.#loading.reject(error)
    this.#child.kill('SIGKILL')
  }

  #killUnresponsive(): void {
    const { log, name } = this.#options
    log.error('model process killed: a cancelled call did not stop', { model: name })
    this.#child.kill('SIGKILL')
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }
}

function processLost(): AppError {
  return new AppError(
    'upstream_error',
    'The model process exited before its response was complete.',
  )
}

function loadTimeout({ loadMs }: ModelProcessOptions): AppError {
  return new AppError(
    'upstream_first_event_timeout',
    `The model was not loaded within ${loadMs / 1000} s.`,
  )
}

function loadError(reason: LoadFault): AppError {
  switch (reason) {
    case 'package':
      return new AppError('upstream_refused', 'The local model runtime failed to start.')
    case 'model':
      return new AppError('upstream_refused', 'The model file cannot be loaded.')
    case 'memory':
      return new AppError('upstream_overloaded', 'There is not enough memory for the model.', {
        retryAfterS: memoryRetryS,
      })
  }
}
