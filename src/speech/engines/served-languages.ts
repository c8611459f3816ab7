import type { EngineConfig } from '#config/schema.ts'
import { type Language, languages } from '#speech/engine.ts'

/** The languages that an engine serves; a configuration that names none means every one. */
export function servedLanguages({ languages: codes }: EngineConfig): readonly Language[] {
  return codes.length === 0 ? languages : languages.filter((language) => codes.includes(language))
}
