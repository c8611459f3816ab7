import { EngineError } from '#speech/engine.ts'
import { restMs } from '#speech/engines/back-off.ts'
import type { Log } from '#telemetry/log.ts'
import type { Program } from './program.ts'

/** Programs that are started before anybody asks for one. */
export type WarmPrograms = {
  /** One that is ready, or is just being started; whoever takes it stops it. */
  take(): Program
  /** Stops every program, whoever has it. */
  close(): Promise<void>
}

type WarmOptions = {
  readonly engineName: string
  /** Kept ready. */
  readonly count: number
  /** Alive at once, with those in use and those that are being stopped. */
  readonly programsMax: number
  readonly start: () => Program
  readonly log: Log
}

/** Between a warm program that broke and the next one. */
const restartRest = { firstMs: 500, maxMs: 60_000 }

/** What waits here and breaks is replaced after a rest that grows; what is taken, at once. */
export function createWarmPrograms(options: WarmOptions): WarmPrograms {
  const { count, programsMax, log, engineName } = options
  const alive = new Set<Program>()
  const waiting = new Set<Program>()
  let failures = 0
  let restTimer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  function start(): Program {
    if (isClosed) throw new EngineError('unreachable', 'the engine is closed')
    if (alive.size >= programsMax) throw new EngineError('busy', 'as many programs as may be')
    const program = options.start()
    alive.add(program)
    void program.gone.then(() => {
      alive.delete(program)
      if (waiting.delete(program)) rest(new EngineError('broken', 'it ended while it waited'))
      else refill()
    })
    return program
  }

  function refill() {
    try {
      while (!isClosed && restTimer === undefined && waiting.size < count) {
        if (alive.size >= programsMax) return
        waiting.add(watch(start()))
      }
    } catch (error) {
      rest(error)
    }
  }

  /** One that does not become ready counts as broken, though it may take a while to be gone. */
  function watch(program: Program): Program {
    program.ready.catch((error: unknown) => {
      if (waiting.delete(program)) rest(error)
    })
    return program
  }

  function rest(error: unknown) {
    if (isClosed || restTimer !== undefined) return
    failures += 1
    const pauseMs = restMs(failures, restartRest)
    log.warn('a program of a speech engine broke and is replaced after a rest', {
      engine: engineName,
      failures,
      pause_ms: Math.round(pauseMs),
      error,
    })
    restTimer = setTimeout(() => {
      restTimer = undefined
      refill()
    }, pauseMs)
  }

  function take(): Program {
    const taken = waiting.values().find(({ isReady }) => isReady) ?? waiting.values().next().value
    if (taken === undefined) return start()
    waiting.delete(taken)
    // Only a program that waited well says that the next one may be started without a rest.
    if (taken.isReady) failures = 0
    refill()
    return taken
  }

  refill()
  return {
    take,
    async close() {
      isClosed = true
      clearTimeout(restTimer)
      waiting.clear()
      await Promise.all(alive.values().map((program) => program.stop()))
    },
  }
}
