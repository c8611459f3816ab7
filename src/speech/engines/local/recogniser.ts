import { jitteredBackoffMs } from '#lib/backoff.ts'
import { roleCommand } from '#lib/own-program.ts'
import { EngineError } from '#speech/engine.ts'
import type { EngineDeps } from '#speech/engines/engine-kind.ts'
import type { RecogniseRequest } from '#speech/engines/segments/segment-session.ts'
import { RecognitionLoad } from './load.ts'
import type { SpeechModel } from './model-files.ts'
import { type ChildResult, type FromChild, localRateHz, type ToChild } from './wire.ts'

export type RecogniserOptions = {
  readonly name: string
  readonly runtime: string
  readonly model: SpeechModel
  readonly threads: number
  /** See `RecognitionLoad`. */
  readonly loadMax: number
  readonly loadMs: number
  /** Without requests the process ends after this time. */
  readonly idleMs: number
  readonly deps: EngineDeps
}

type Job = RecogniseRequest & {
  readonly resolve: (result: ChildResult | null) => void
  readonly reject: (error: unknown) => void
}

/** Finals in the queue; the sessions' own limits are lower. */
const queueMax = 1_000
/** A single request takes a fraction of this. */
const requestMsMax = 120_000
const restartBackoff = { firstMs: 500, maxMs: 30_000 }
const stderrCharsMax = 2_000
/** Audio of the first measurement, after the model was loaded. */
const measuredMs = 4_000
/** Of full scale: a model that gets silence skips most of its work. */
const noiseAmplitude = 2_000

/**
 * One loaded model for all sessions of an engine: a process that recognises one piece of audio at a
 * time, and a bounded queue before it. Finals come before partials, and waiting partials are dropped
 * when finals wait. A process that died or got stuck is replaced; its request fails.
 */
export class Recogniser {
  readonly #options: RecogniserOptions
  readonly #finals: Job[] = []
  readonly #partials: Job[] = []
  readonly #load: RecognitionLoad
  #child: Bun.Subprocess<'ignore', 'ignore', 'pipe'> | null = null
  #loading: Promise<void> | null = null
  #running: Job | null = null
  #failures = 0
  #retryAt = 0
  #idleTimer: Timer | undefined
  #isClosed = false

  constructor(options: RecogniserOptions) {
    this.#options = options
    this.#load = new RecognitionLoad(options.loadMax)
  }

  /** The process that has the model in memory; null if none has. */
  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  /** Loads the model if it is not in memory. Rejects with an `EngineError`. */
  load(): Promise<void> {
    if (this.#isClosed) return Promise.reject(unreachable('the engine is closed'))
    if (this.#child !== null && this.#loading === null) return Promise.resolve()
    this.#loading ??= this.#start().finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  /** Whether another session would be served in time. */
  hasCapacity(): boolean {
    return this.#load.admits(this.#waitingMs())
  }

  /** Takes the place of a session until the returned function is called. Throws an `EngineError`. */
  takeCapacity(): () => void {
    return this.#load.take(this.#waitingMs())
  }

  /** Null: a partial for which there was no time. */
  recognise(request: RecogniseRequest): Promise<ChildResult | null> {
    const { promise, resolve, reject } = Promise.withResolvers<ChildResult | null>()
    const queue = request.isPartial ? this.#partials : this.#finals
    if (this.#finals.length >= queueMax) {
      return Promise.reject(new EngineError('busy', 'too many segments wait'))
    }
    const job = { ...request, resolve, reject }
    queue.push(job)
    clearTimeout(this.#idleTimer)
    void this.#next()
    return promise
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idleTimer)
    for (const job of [...this.#finals.splice(0), ...this.#partials.splice(0)]) {
      job.reject(unreachable('the engine is closed'))
    }
    const child = this.#child
    child?.kill('SIGKILL')
    await child?.exited
  }

  async #next(): Promise<void> {
    if (this.#running !== null) return
    const job = this.#take()
    if (job === null) {
      this.#stopWhenIdle()
      return
    }
    this.#running = job
    try {
      await this.load()
      if (job.signal.aborted) job.resolve(null)
      else job.resolve(await this.#measure(job))
    } catch (error) {
      job.reject(error)
    } finally {
      this.#running = null
    }
    for (const waiting of this.#finals) waiting.alive()
    void this.#next()
  }

  #take(): Job | null {
    for (;;) {
      const final = this.#finals.shift()
      if (final?.signal.aborted === false) return final
      if (final !== undefined) {
        final.resolve(null)
        continue
      }
      const partial = this.#partials.shift()
      if (partial === undefined) return null
      if (!partial.signal.aborted) return partial
      partial.resolve(null)
    }
  }

  #waitingMs(): number {
    return this.#finals.reduce((sum, { samples }) => sum + msOf(samples), 0)
  }

  async #measure(request: Pick<Job, 'samples' | 'language' | 'isPartial'>): Promise<ChildResult> {
    const startedAt = performance.now()
    const result = await this.#ask(request)
    if (!request.isPartial) {
      this.#load.record(performance.now() - startedAt, msOf(request.samples))
    }
    return result
  }

  #ask({ samples, language }: Pick<Job, 'samples' | 'language'>): Promise<ChildResult> {
    const child = this.#child
    if (child === null) return Promise.reject(unreachable('the model process exited'))
    const { promise, resolve, reject } = Promise.withResolvers<ChildResult>()
    this.#answer = { resolve, reject }
    const timer = setTimeout(() => child.kill('SIGKILL'), requestMsMax)
    send(child, { type: 'recognise', samples, language })
    return promise.finally(() => clearTimeout(timer))
  }

  #answer: {
    readonly resolve: (result: ChildResult) => void
    readonly reject: (error: unknown) => void
  } | null = null

  async #start(): Promise<void> {
    const { runtime, model, threads, loadMs, deps, name } = this.#options
    const pauseMs = this.#retryAt - performance.now()
    if (pauseMs > 0) throw unreachable('the model process failed and is restarted later')
    const loaded = Promise.withResolvers<void>()
    const child = Bun.spawn(roleCommand('recognise-speech'), {
      // Outside the project, so no developer configuration applies.
      cwd: '/',
      env: { ...(deps.computeEnvironment ?? deps.environment) },
      stdio: ['ignore', 'ignore', 'pipe'],
      serialization: 'advanced',
      ipc: (message: FromChild) => this.#onMessage(message, loaded),
    })
    this.#child = child
    void this.#untilExit(child, loaded.reject)
    const timer = setTimeout(() => child.kill('SIGKILL'), loadMs)
    send(child, { type: 'load', runtime, model, threads })
    try {
      await loaded.promise
      if (!this.#load.isMeasured) {
        const [language = 'en'] = model.languages
        await this.#measure({ samples: noise(), language, isPartial: false })
      }
      deps.log.info('speech model loaded', { engine: name, model: model.name, pid: child.pid })
    } finally {
      clearTimeout(timer)
    }
  }

  #onMessage(message: FromChild, loaded: PromiseWithResolvers<void>): void {
    const answer = this.#answer
    if (message.type === 'loaded') {
      loaded.resolve()
    } else if (message.type === 'load-failed') {
      loaded.reject(new EngineError('refused', `the model cannot be loaded: ${message.detail}`))
      this.#child?.kill('SIGKILL')
    } else {
      this.#answer = null
      if (message.type === 'recognised') {
        this.#failures = 0
        answer?.resolve(message)
      } else {
        answer?.reject(new EngineError('broken', message.detail))
      }
    }
  }

  async #untilExit(
    child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>,
    failLoading: (error: unknown) => void,
  ): Promise<void> {
    const { deps, name } = this.#options
    const output = new Response(child.stderr).text().catch(() => '')
    await child.exited
    if (this.#child === child) this.#child = null
    const isExpected = this.#isClosed || this.#isStopping === child
    const error = unreachable('the model process exited')
    failLoading(error)
    this.#answer?.reject(error)
    this.#answer = null
    if (isExpected) return
    this.#failures += 1
    this.#retryAt = performance.now() + jitteredBackoffMs(this.#failures, restartBackoff)
    deps.log.error('speech model process exited', {
      engine: name,
      how: child.signalCode ?? `code ${child.exitCode}`,
      stderr: (await output).slice(-stderrCharsMax).trim(),
    })
  }

  #isStopping: Bun.Subprocess<'ignore', 'ignore', 'pipe'> | null = null

  #stopWhenIdle(): void {
    clearTimeout(this.#idleTimer)
    if (this.#child === null || this.#isClosed) return
    this.#idleTimer = setTimeout(() => {
      this.#isStopping = this.#child
      this.#child?.kill('SIGKILL')
    }, this.#options.idleMs)
  }
}

function msOf(samples: Int16Array): number {
  return (samples.length * 1_000) / localRateHz
}

function noise(): Int16Array {
  const samples = new Int16Array((measuredMs * localRateHz) / 1_000)
  return samples.map(() => (Math.random() * 2 - 1) * noiseAmplitude)
}

function unreachable(message: string): EngineError {
  return new EngineError('unreachable', message)
}

function send(child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>, message: ToChild): void {
  child.send(message)
}
