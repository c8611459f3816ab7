import { join, resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import { flag, section, text, whole } from '#config/keys.ts'

/** The default name of the upstream of embedding models on this machine. */
export const onnxUpstreamName = 'local-embeddings'

/** The keys of embedding and rerank models on this machine. */
export const onnxKeys = {
  onnx: section(
    'Installed embedding and rerank models, run on this machine with ONNX Runtime. Each worker loads its own.',
    {
      enabled: flag(
        'Whether installed models are offered once `bun run embed:install` was run: by an upstream named "local-embeddings", unless there is an [[upstream]] with api = "onnx".',
        true,
      ),
      packageFolder: Type.Optional(
        text(
          'Folder in which onnxruntime-node is installed. Default: the folder onnx in the data folder.',
          { env: 'SLUICE_ONNX_PACKAGE' },
        ),
      ),
      threads: whole('CPU threads per model; 0: half of the processors.', {
        default: 0,
        minimum: 0,
        maximum: 1_024,
      }),
      modelsLoadedMax: whole('Maximum models in memory; an idle one is unloaded if needed.', {
        default: 2,
        minimum: 1,
      }),
      memoryBytesMax: whole('Memory limit of the process of a model, where prlimit exists.', {
        default: 2_147_483_648,
        minimum: 536_870_912,
      }),
      queueMax: whole('Concurrent requests per model; more are refused with 503.', {
        default: 64,
        minimum: 1,
      }),
      loadMs: whole('Timeout for loading a model.', { default: 120_000, minimum: 100 }),
      idleMs: whole('Idle time after which a model is unloaded.', {
        default: 1_800_000,
        minimum: 0,
      }),
    },
  ),
}

/** The folder of onnxruntime-node; absolute, because its processes have another working directory. */
export function onnxFolder(config: { data: string; onnx: { packageFolder?: string } }): string {
  return resolve(config.onnx.packageFolder ?? join(config.data, 'onnx'))
}
