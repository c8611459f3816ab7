import { isLanguage } from '#speech/engine.ts'
import type { EngineChoice, EnginePool } from '#speech/engines/pool.ts'
import { unknownModel, unsupportedLanguage } from './failures.ts'

/**
 * What a request's model and language mean. Throws `model_not_found`, or `unsupported_language` with
 * those that are served.
 */
export function resolveEngine(
  { model, language }: { model: string; language: string },
  { pool, models }: { pool: Pick<EnginePool, 'engines' | 'languages'>; models: readonly string[] },
): EngineChoice {
  const engine = models.includes(model) ? null : pool.engines.find(({ name }) => name === model)
  if (engine === undefined) throw unknownModel(model)
  const served = engine?.languages ?? pool.languages
  if (!isLanguage(language) || !served.includes(language)) throw unsupportedLanguage(served)
  return { language, engineName: engine?.name ?? null, avoid: null }
}
