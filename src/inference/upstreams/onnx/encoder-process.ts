import type { LoadableProcess } from '#inference/local-models/local-model.ts'
import { logStderr } from '#inference/local-models/process-stderr.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import { roleCommand } from '#lib/own-program.ts'
import type { Log } from '#telemetry/log.ts'
import { RunQueue, type Urgency } from './run-queue.ts'
import type { FromChild, LoadOptions, Run, RunResult, ToChild } from './wire.ts'

export type EncoderProcessOptions = {
  /** For the log. */
  readonly name: string
  readonly load: LoadOptions
  readonly loadMs: number
  /** A run without a result for this long means that the process hangs. */
  readonly runMs: number
  readonly memoryBytesMax: number
  readonly runsQueuedMax: number
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** A child process that runs one embedding or rerank model. */
export class EncoderProcess implements LoadableProcess {
  readonly loaded: Promise<{ contextTokens: number }>
  readonly exited: Promise<{ isExpected: boolean }>
  readonly #options: EncoderProcessOptions
  readonly #child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  readonly #loading = Promise.withResolvers<{ contextTokens: number }>()
  readonly #queue: RunQueue
  #timer: ReturnType<typeof setTimeout>
  #isStopped = false
  #isFailureReported = false

  constructor(options: EncoderProcessOptions) {
    this.#options = options
    this.loaded = this.#loading.promise
    // There may be no caller that awaits it.
    this.loaded.catch(() => {})
    this.#child = Bun.spawn(limitedCommand(options.memoryBytesMax), {
      // Outside the project, so no developer configuration applies.
      cwd: '/',
      env: { ...options.environment, ...childEnvironment },
      stdio: ['ignore', 'ignore', 'pipe'],
      // Vectors are transferred as bytes.
      serialization: 'advanced',
      ipc: (message: FromChild) => this.#handleMessage(message),
    })
    this.#timer = setTimeout(() => this.#abandonLoad(loadTimeout(options)), options.loadMs)
    this.#queue = new RunQueue((run) => this.#startRun(run), options.runsQueuedMax)
    this.exited = this.#untilExit()
    this.#send({ type: 'load', ...options.load })
  }

  get pid(): number {
    return this.#child.pid
  }

  /** Requires that the model is loaded. */
  run(run: Run, urgency: Urgency, signal: CancelSignal): Promise<RunResult> {
    return this.#queue.add(run, urgency, signal)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#child.kill('SIGKILL')
    await this.exited
  }

  #startRun(run: Run): void {
    this.#timer = setTimeout(() => this.#kill('a run did not end'), this.#options.runMs)
    this.#send({ type: 'run', run })
  }

  #handleMessage(message: FromChild): void {
    clearTimeout(this.#timer)
    switch (message.type) {
      case 'loaded':
        this.#loading.resolve({ contextTokens: message.tokensMax })
        return
      case 'load-failed':
        this.#options.log.warn('model load failed', {
          model: this.#options.name,
          reason: message.detail,
        })
        this.#abandonLoad(loadError(message.reason))
        return
      case 'ended':
        this.#queue.settle(message.result)
        return
      case 'failed':
        this.#options.log.warn('model run failed', {
          model: this.#options.name,
          reason: message.detail,
        })
        this.#queue.settle(new AppError('upstream_refused', 'The model failed on this input.'))
    }
  }

  async #untilExit(): Promise<{ isExpected: boolean }> {
    const { log, name } = this.#options
    void logStderr(this.#child.stderr, this.#options)
    await this.#child.exited
    clearTimeout(this.#timer)
    const { exitCode, signalCode } = this.#child
    const how = signalCode === null ? `code ${exitCode}` : `signal ${signalCode}`
    const isKnown = this.#isStopped || this.#isFailureReported
    if (!isKnown) log.error('model process exited', { model: name, how })
    this.#loading.reject(processLost())
    this.#queue.close(processLost())
    return { isExpected: this.#isStopped }
  }

  #send(message: ToChild): void {
    const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null
    if (!hasEnded) this.#child.send(message)
  }

  #abandonLoad(error: AppError): void {
    this.#isFailureReported = true
    this.#loading.reject(error)
    this.#child.kill('SIGKILL')
  }

  #kill(reason: string): void {
    this.#options.log.error('model process killed', { model: this.#options.name, reason })
    this.#child.kill('SIGKILL')
  }
}

const childEnvironment = {
  // The default reservation would count towards the memory limit.
  BUN_JSC_jitMemoryReservationSize: String(64 * 1024 * 1024),
}

/** Without `prlimit`, memory is not limited. */
function limitedCommand(memoryBytesMax: number): string[] {
  const command = roleCommand('run-encoder')
  const prlimit = Bun.which('prlimit')
  return prlimit === null ? command : [prlimit, `--data=${memoryBytesMax}`, '--core=0', ...command]
}

function processLost(): AppError {
  return new AppError('upstream_error', 'The model process exited before its result was complete.')
}

function loadTimeout({ loadMs }: EncoderProcessOptions): AppError {
  return new AppError(
    'upstream_first_event_timeout',
    `The model was not loaded within ${loadMs / 1000} s.`,
  )
}

function loadError(reason: 'package' | 'model'): AppError {
  return new AppError(
    'upstream_refused',
    reason === 'package'
      ? 'The local embedding runtime failed to start.'
      : 'The model files cannot be loaded.',
  )
}
