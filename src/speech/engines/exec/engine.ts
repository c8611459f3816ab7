import type { EngineConfig } from '#config/schema.ts'
import { type Engine, EngineError, type EngineOpenOptions } from '#speech/engine.ts'
import type { EngineDeps } from '#speech/engines/engine-deps.ts'
import { servedLanguages } from '#speech/engines/served-languages.ts'
import { Program } from './program.ts'
import { createExecSession } from './session.ts'
import { createWarmPrograms } from './warm-programs.ts'

const defaultSampleRateHz = 16_000
/** Programs that are being stopped while their places are taken again. */
const endingProgramsMax = 8

/**
 * A program that reads samples and prints JSON lines (`messages.ts`), with frames around its input
 * where it is told more than samples (`frames.ts`). One process serves one session, so that
 * nothing of one caller can reach another.
 */
export function createExecEngine(config: EngineConfig, { log, environment }: EngineDeps): Engine {
  const { name, command, framed, openMs, sessionsMax, sessionMsMax, warm } = config
  const sampleRateHz = config.sampleRateHz ?? defaultSampleRateHz
  const programs = createWarmPrograms({
    engineName: name,
    count: warm,
    programsMax: sessionsMax + warm + endingProgramsMax,
    start: () => new Program({ engineName: name, command, environment, openMs, log }),
    log,
  })

  async function open(options: EngineOpenOptions) {
    if (options.signal.aborted) throw new EngineError('unreachable', 'nobody waits for it any more')
    const program = programs.take()
    try {
      await readyUnlessAborted(program, options.signal)
      return createExecSession({ ...options, program, framed, sampleRateHz })
    } catch (error) {
      void program.stop()
      throw error
    }
  }

  return {
    name,
    languages: servedLanguages(config),
    sampleRateHz,
    features: { partials: true, words: true, confidence: true, finalize: framed },
    limits: { sessionsMax, sessionMsMax },
    open,
    close: programs.close,
  }
}

async function readyUnlessAborted(program: Program, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(new EngineError('unreachable', 'nobody waits for it any more'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    await Promise.race([program.ready, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
