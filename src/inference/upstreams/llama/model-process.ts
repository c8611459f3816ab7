import { fileURLToPath } from 'node:url'
import { AppError } from '#lib/errors.ts'
import { orAfter } from '#lib/time-limit.ts'
import { createExchange, type Exchange, type ExchangeEnd } from './exchange.ts'
import type { LlamaLog } from './log.ts'
import { readLines } from './output-lines.ts'
import type { FromChild, LoadFault, LoadOptions, Prompt, ToChild } from './wire.ts'

export type ModelProcessOptions = {
  /** For the log. */
  readonly name: string
  readonly load: LoadOptions
  readonly loadMs: number
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: LlamaLog
}

const stderrLimits = { charsMax: 500, linesMax: 200 }
/** How long the process may hold a sequence that nobody wants any more. */
const releaseMs = 30_000
/** How long its last lines are waited for. */
const outputAfterExitMs = 1_000
/** Memory that is short now may be free later, but not at once. */
const memoryRetryS = 60

const program = fileURLToPath(new URL('./child.ts', import.meta.url))

/** One process with one model, from its start to its end. Whoever starts it stops it. */
export class ModelProcess {
  /** The context that it came to; rejects with an `AppError` where it cannot be of use. */
  readonly loaded: Promise<{ contextTokens: number }>
  /**
   * Resolves when nothing of it is left. It was wanted where somebody stopped it; a model that cannot
   * be loaded counts as broken.
   */
  readonly gone: Promise<{ wasWanted: boolean }>
  readonly #options: ModelProcessOptions
  readonly #child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  readonly #loading = Promise.withResolvers<{ contextTokens: number }>()
  readonly #loadTimer: ReturnType<typeof setTimeout>
  readonly #exchanges = new Map<number, Exchange & ExchangeEnd>()
  #nextExchange = 0
  #isStopped = false
  /** Why it ends was told. */
  #isGivenUp = false

  constructor(options: ModelProcessOptions) {
    this.#options = options
    this.loaded = this.#loading.promise
    // Nobody may be waiting for it.
    this.loaded.catch(() => {})
    this.#child = Bun.spawn([process.execPath, '--no-install', program], {
      // Where no settings of a developer are found.
      cwd: '/',
      env: { ...options.environment },
      stdio: ['ignore', 'ignore', 'pipe'],
      ipc: (message: FromChild) => this.#hear(message),
    })
    this.#loadTimer = setTimeout(() => this.#giveUp(loadedTooLate(options)), options.loadMs)
    this.gone = this.#live()
    this.#tell({ type: 'load', ...options.load })
  }

  get pid(): number {
    return this.#child.pid
  }

  /** Only once it is loaded. */
  begin(type: 'generate' | 'count', prompt: Prompt): Exchange {
    const id = this.#nextExchange++
    const exchange = createExchange({
      taken: (pieces) => this.#tell({ type: 'taken', exchange: id, pieces }),
      stop: () => this.#tell({ type: 'stop', exchange: id }),
      stuck: () => this.#endStuck(),
      releaseMs,
    })
    if (this.#hasEnded()) {
      exchange.fail(lost())
      return exchange
    }
    this.#exchanges.set(id, exchange)
    this.#tell({ type, exchange: id, prompt })
    return exchange
  }

  /** Ends it at once; what it is doing fails. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#child.kill('SIGKILL')
    await this.gone
  }

  #hear(message: FromChild): void {
    switch (message.type) {
      case 'loaded':
        clearTimeout(this.#loadTimer)
        this.#loading.resolve({ contextTokens: message.contextTokens })
        return
      case 'unloadable':
        this.#options.log.warn('a model cannot be loaded', {
          model: this.#options.name,
          reason: message.detail,
        })
        this.#giveUp(unloadable(message.reason))
        return
      case 'begun':
        this.#exchanges.get(message.exchange)?.begin()
        return
      case 'piece':
        this.#exchanges.get(message.exchange)?.add(message.piece)
        return
      case 'ended':
        this.#exchanges.get(message.exchange)?.end(message.ending)
        this.#exchanges.delete(message.exchange)
    }
  }

  async #live(): Promise<{ wasWanted: boolean }> {
    const { log, name } = this.#options
    const output = this.#logErrors()
    await this.#child.exited
    clearTimeout(this.#loadTimer)
    await orAfter(output, outputAfterExitMs, undefined)
    const { exitCode, signalCode } = this.#child
    const how = signalCode === null ? `code ${exitCode}` : `signal ${signalCode}`
    const isKnown = this.#isStopped || this.#isGivenUp
    if (!isKnown) log.error('the process of a model ended', { model: name, how })
    this.#loading.reject(lost())
    for (const exchange of this.#exchanges.values()) exchange.fail(lost())
    this.#exchanges.clear()
    return { wasWanted: this.#isStopped }
  }

  async #logErrors(): Promise<void> {
    const { log, name } = this.#options
    for await (const line of readLines(this.#child.stderr, stderrLimits)) {
      log.info('the process of a model wrote to its error output', { model: name, line })
    }
  }

  #tell(message: ToChild): void {
    if (!this.#hasEnded()) this.#child.send(message)
  }

  #giveUp(error: AppError): void {
    this.#isGivenUp = true
    this.#loading.reject(error)
    this.#child.kill('SIGKILL')
  }

  #endStuck(): void {
    const { log, name } = this.#options
    log.error('a model does not stop, so its process is ended', { model: name })
    this.#child.kill('SIGKILL')
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }
}

function lost(): AppError {
  return new AppError('upstream_error', 'The model ended before its answer was complete.')
}

function loadedTooLate({ loadMs }: ModelProcessOptions): AppError {
  return new AppError(
    'upstream_first_event_timeout',
    `The model was not in memory within ${loadMs / 1000} s.`,
  )
}

function unloadable(reason: LoadFault): AppError {
  switch (reason) {
    case 'package':
      return new AppError('upstream_refused', 'What runs models on this machine does not work.')
    case 'model':
      return new AppError('upstream_refused', 'The file of the model cannot be loaded.')
    case 'memory':
      return new AppError('upstream_overloaded', 'There is not enough memory for the model.', {
        retryAfterS: memoryRetryS,
      })
  }
}
