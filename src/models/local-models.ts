import type { Config } from '#config/schema.ts'
import { createLlama, type Llama } from '#inference/upstreams/llama/adapter.ts'
import type { InstalledModels } from '#installer/library.ts'
import type { Log } from '#telemetry/log.ts'
import { ggufModels } from './gguf-models.ts'
import { llamaFolder } from './llama-config.ts'

/** The adapter for installed models, which run on this machine. */
export function createLocalModels(
  config: Pick<Config, 'data' | 'llama'>,
  deps: {
    installed: InstalledModels
    environment: Readonly<Record<string, string | undefined>>
    log: Log
  },
): Llama {
  const { installed, environment, log } = deps
  const settings = { ...config.llama, packageFolder: llamaFolder(config) }
  return createLlama({ models: () => ggufModels(installed), settings, environment, log })
}
