import type { EngineConfig } from '#config/schema.ts'
import { jitteredBackoffMs } from '#lib/backoff.ts'
import { EngineError, resultFeatures } from '#speech/engine.ts'
import {
  describeEngine,
  type EngineDeps,
  type EngineKind,
  openAborted,
} from '#speech/engines/engine-kind.ts'
import { Program } from './program.ts'
import { ExecSession } from './session.ts'

/** Programs that may still be exiting while their replacements start. */
const exitingProgramsMax = 8
/** After consecutive failures of warm programs. */
const restartBackoff = { firstMs: 500, maxMs: 60_000 }

/**
 * A program that reads samples and prints JSON lines (`protocol.ts`). One process serves one
 * session, which isolates clients from one another.
 */
export const exec: EngineKind = {
  location: 'command',
  declaresFeatures: true,
  create(config, deps) {
    const engine = describeEngine(config)
    const programs = new WarmPrograms(config, deps)
    const declared = config.features ?? resultFeatures
    const features = {
      partials: declared.includes('partials'),
      words: declared.includes('words'),
      confidence: declared.includes('confidence'),
      finalize: config.framed,
    }
    const io = { features, framed: config.framed, sampleRateHz: engine.sampleRateHz }
    return {
      ...engine,
      features,
      async open(options) {
        if (options.signal.aborted) throw openAborted()
        const program = programs.take()
        try {
          await readyUnlessAborted(program, options.signal)
          return new ExecSession(program, options, io)
        } catch (error) {
          void program.stop()
          throw error
        }
      },
      close: () => programs.close(),
    }
  },
}

async function readyUnlessAborted(program: Program, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(openAborted())
  signal.addEventListener('abort', abort, { once: true })
  try {
    await Promise.race([program.ready, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/**
 * Starts programs in advance. A program that fails while waiting is replaced after a growing pause;
 * one that is taken, immediately. Owns all running programs of the engine.
 */
class WarmPrograms {
  readonly #config: EngineConfig
  readonly #deps: EngineDeps
  /** Running programs, including those in use and those that are exiting. */
  readonly #programsMax: number
  readonly #running = new Set<Program>()
  readonly #waiting = new Set<Program>()
  #failures = 0
  #backoffTimer: Timer | undefined
  #isClosed = false

  constructor(config: EngineConfig, deps: EngineDeps) {
    this.#config = config
    this.#deps = deps
    this.#programsMax = config.sessionsMax + config.warm + exitingProgramsMax
    this.#refill()
  }

  /** A program that is ready or starting; the caller stops it. */
  take(): Program {
    const ready = this.#waiting.values().find(({ isReady }) => isReady)
    const taken = ready ?? this.#waiting.values().next().value
    if (taken === undefined) return this.#start()
    this.#waiting.delete(taken)
    // Only a program that became ready shows that the next one may start without a pause.
    if (taken.isReady) this.#failures = 0
    this.#refill()
    return taken
  }

  /** Stops every program, including those in use. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#backoffTimer)
    this.#waiting.clear()
    await Promise.all(this.#running.values().map((program) => program.stop()))
  }

  #start(): Program {
    if (this.#isClosed) throw new EngineError('unreachable', 'the engine is closed')
    if (this.#running.size >= this.#programsMax) {
      throw new EngineError('busy', 'the maximum number of programs is running')
    }
    const program = new Program(this.#config, this.#deps)
    this.#running.add(program)
    void program.gone.then(() => {
      this.#running.delete(program)
      if (this.#waiting.delete(program)) {
        this.#backOff(new EngineError('broken', 'the program exited while waiting'))
      } else {
        this.#refill()
      }
    })
    return program
  }

  #refill(): void {
    const { warm } = this.#config
    try {
      while (!this.#isClosed && this.#backoffTimer === undefined && this.#waiting.size < warm) {
        if (this.#running.size >= this.#programsMax) return
        const program = this.#start()
        this.#waiting.add(program)
        // A program that does not become ready has failed, even if it takes time to exit.
        program.ready.catch((error: unknown) => {
          if (this.#waiting.delete(program)) this.#backOff(error)
        })
      }
    } catch (error) {
      this.#backOff(error)
    }
  }

  #backOff(error: unknown): void {
    if (this.#isClosed || this.#backoffTimer !== undefined) return
    this.#failures += 1
    const pauseMs = jitteredBackoffMs(this.#failures, restartBackoff)
    this.#deps.log.warn('warm speech engine program failed, restarting later', {
      engine: this.#config.name,
      failures: this.#failures,
      pause_ms: Math.round(pauseMs),
      error,
    })
    this.#backoffTimer = setTimeout(() => {
      this.#backoffTimer = undefined
      this.#refill()
    }, pauseMs)
  }
}
