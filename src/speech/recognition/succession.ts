import type { EngineError } from '#speech/engine.ts'
import type { EngineRun } from './engine-run.ts'
import { type Supply, supplyEngineRun } from './engine-supply.ts'

/** The search for the engine session that goes on after this one; one at a time. */
export type Succession = {
  /** Begins it, unless it has begun. */
  seek(avoid: string | null): void
  /** What was found, once. */
  take(): EngineRun | null
  /** Ends it, and gives back what was found and not taken. */
  stop(): void
}

export type SuccessionHooks = {
  found(): void
  waiting(error: EngineError): void
  gaveUp(error: EngineError): void
}

export function createSuccession(
  supply: Omit<Supply, 'signal' | 'waiting'>,
  hooks: SuccessionHooks,
): Succession {
  let search: AbortController | null = null
  let found: EngineRun | null = null

  const seekWith = async (controller: AbortController, avoid: string | null) => {
    const isOn = () => search === controller && !controller.signal.aborted
    try {
      const run = await supplyEngineRun({
        ...supply,
        choice: { ...supply.choice, avoid },
        signal: controller.signal,
        waiting: (error) => {
          if (isOn()) hooks.waiting(error)
        },
      })
      if (!isOn()) return run.abort()
      found = run
      hooks.found()
    } catch (error) {
      if (!isOn()) return
      search = null
      hooks.gaveUp(error as EngineError)
    }
  }

  return {
    seek(avoid) {
      if (search !== null) return
      search = new AbortController()
      void seekWith(search, avoid)
    },
    take() {
      const run = found
      if (run !== null) search = null
      found = null
      return run
    },
    stop() {
      search?.abort()
      search = null
      found?.abort()
      found = null
    },
  }
}
