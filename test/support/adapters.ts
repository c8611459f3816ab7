import { loadConfig } from '#config/load.ts'
import { createFlite } from '#inference/upstreams/flite/adapter.ts'
import { adapters } from '#inference/upstreams/index.ts'
import { createLlama } from '#inference/upstreams/llama/adapter.ts'
import { createOnnx } from '#inference/upstreams/onnx/adapter.ts'
import { quietLog } from './quiet-log.ts'

const config = loadConfig({})
const withoutModels = { models: async () => [], environment: {}, log: quietLog }

/** The adapters of a process without models on this machine. */
export const adaptersWithoutModels = {
  ...adapters,
  llama: createLlama({
    ...withoutModels,
    settings: { ...config.llama, packageFolder: '/nowhere' },
  }),
  onnx: createOnnx({ ...withoutModels, settings: { ...config.onnx, packageFolder: '/nowhere' } }),
  flite: createFlite({
    environment: {},
    log: quietLog,
    settings: { ...config.flite, packageFolder: '/nowhere' },
  }),
}
