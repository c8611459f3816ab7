import { join, resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import { flag, section, text, whole } from '#config/keys.ts'

/** The default name of the upstream of local models. */
export const localUpstreamName = 'local'

/** The keys of local models. */
export const llamaKeys = {
  llama: section(
    'Installed GGUF models, run on this machine with llama.cpp. Each worker loads its own.',
    {
      enabled: flag(
        'Whether installed models are offered once `bun run llama:install` was run: by an upstream named "local", unless there is an [[upstream]] with api = "llama".',
        true,
      ),
      packageFolder: Type.Optional(
        text(
          'Folder in which node-llama-cpp is installed. Default: the folder llama in the data folder.',
          {
            env: 'SLUICE_LLAMA_PACKAGE',
          },
        ),
      ),
      gpu: flag('Whether a GPU is used if available.', true),
      threads: whole('CPU threads per model; 0: number of processors minus one.', {
        default: 0,
        minimum: 0,
        maximum: 1_024,
      }),
      modelsLoadedMax: whole('Maximum models in memory; an idle one is unloaded if needed.', {
        default: 2,
        minimum: 1,
      }),
      memoryBytesMax: Type.Optional(
        Type.Integer({
          description:
            'Maximum total file size of the models in memory; contexts need additional memory.',
          minimum: 1,
        }),
      ),
      sequencesMax: whole('Concurrent generations per model; each has its own context.', {
        default: 2,
        minimum: 1,
        maximum: 64,
      }),
      queueMax: whole('Queued generations per model; more are refused with 503.', {
        default: 32,
        minimum: 0,
      }),
      contextTokensMax: whole('Maximum context, input and output together.', {
        default: 8_192,
        minimum: 256,
      }),
      loadMs: whole('Timeout for loading a model.', {
        default: 120_000,
        minimum: 100,
      }),
      idleMs: whole('Idle time after which a model is unloaded.', {
        default: 600_000,
        minimum: 0,
      }),
      seed: Type.Optional(
        Type.Integer({
          description:
            'Random seed for reproducible output; by default, every request uses a new one.',
          minimum: 0,
          maximum: 4_294_967_295,
        }),
      ),
    },
  ),
}

/** The folder of node-llama-cpp; absolute, because its processes have another working directory. */
export function llamaFolder(config: { data: string; llama: { packageFolder?: string } }): string {
  return resolve(config.llama.packageFolder ?? join(config.data, 'llama'))
}
