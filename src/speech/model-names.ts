import type { Config } from '#config/schema.ts'
import type { EnginePool } from './engines/pool.ts'

/** Looking for an installed model reads its folder. */
const checkMs = 1_000

/** The names that select an engine: those of the configuration, and of the engines that can serve now. */
export function createSpeechModelNames(pool: EnginePool, config: Pick<Config, 'speech'>) {
  let { models, dialectModels } = config.speech
  let names: readonly string[] = []
  let checkedAtMs = Number.NEGATIVE_INFINITY

  return {
    /** The same array until they change. */
    current(): readonly string[] {
      if (performance.now() - checkedAtMs < checkMs) return names
      checkedAtMs = performance.now()
      const available = pool.states().filter(({ isAvailable }) => isAvailable)
      const found = [...new Set([...models, ...available.map(({ name }) => name)])]
      if (!Bun.deepEquals(found, names)) names = found
      return names
    },
    /** Whether the name selects an engine by language in a foreign protocol. */
    selectsByLanguage: (name: string): boolean =>
      models.includes(name) || dialectModels.includes(name),
    configure(next: Pick<Config, 'speech'>): void {
      models = next.speech.models
      dialectModels = next.speech.dialectModels
      checkedAtMs = Number.NEGATIVE_INFINITY
    },
  }
}
