import { loadConfig } from '#config/load.ts'
import { adapters } from '#inference/upstreams/index.ts'
import { createLlama } from '#inference/upstreams/llama/adapter.ts'

/** Every adapter, without local models. */
export const adaptersWithoutModels = {
  ...adapters,
  llama: createLlama({
    models: async () => [],
    settings: { ...loadConfig({}).llama, packageFolder: '/nowhere' },
    environment: {},
    log: { info() {}, warn() {}, error() {} },
  }),
}
