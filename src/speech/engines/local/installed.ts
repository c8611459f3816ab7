import type { EngineConfig } from '#config/schema.ts'
import type { SpeechFolders } from '#speech/engines/engine-kind.ts'
import { findModel } from './model-files.ts'
import { runtimeEntry } from './package.ts'

/** What is installed of the runtime and the model. */
export function findInstalled({ model }: Pick<EngineConfig, 'model'>, folders?: SpeechFolders) {
  if (folders === undefined) return { runtime: null, model: null }
  return { runtime: runtimeEntry(folders.runtime), model: findModel(folders.models, model) }
}
