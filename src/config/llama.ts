import { join, resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import { flag, section, text, whole } from './keys.ts'

/** The upstream of the models that run on this machine, where no entry gives it another name. */
export const localUpstreamName = 'local'

/** The keys about installed models that run on this machine. */
export const llamaKeys = {
  llama: section(
    'Installed GGUF models, run on this machine by llama.cpp; each worker has its own.',
    {
      enabled: flag(
        'Whether they are offered, by an upstream named "local" if there is no [[upstream]] of api "llama", once `bun run llama:install` was run.',
        true,
      ),
      packageFolder: Type.Optional(
        text(
          'Where node-llama-cpp is installed; without it, the folder llama in the data folder.',
          {
            env: 'SLUICE_LLAMA_PACKAGE',
          },
        ),
      ),
      gpu: flag('Whether a graphics processor is used, where the package finds one.', true),
      threads: whole('Processor threads of each model; 0: one less than there are processors.', {
        default: 0,
        minimum: 0,
        maximum: 1_024,
      }),
      modelsLoadedMax: whole('Models in memory at once; one that nobody uses makes room.', {
        default: 2,
        minimum: 1,
      }),
      memoryBytesMax: Type.Optional(
        Type.Integer({
          description:
            'The most that the files of the models in memory may come to; a context takes more beside it.',
          minimum: 1,
        }),
      ),
      sequencesMax: whole('Generations of one model at once; each has a context of its own.', {
        default: 2,
        minimum: 1,
        maximum: 64,
      }),
      queueMax: whole('Generations that wait for one model; more are refused with 503.', {
        default: 32,
        minimum: 0,
      }),
      contextTokensMax: whole('The longest context, for input and output together.', {
        default: 8_192,
        minimum: 256,
      }),
      loadMs: whole('How long a model may take until it is in memory.', {
        default: 120_000,
        minimum: 100,
      }),
      idleMs: whole('How long a model that nobody uses stays in memory.', {
        default: 600_000,
        minimum: 0,
      }),
      seed: Type.Optional(
        Type.Integer({
          description:
            'Makes the same of the same request; without it, chance decides anew each time.',
          minimum: 0,
          maximum: 4_294_967_295,
        }),
      ),
    },
  ),
}

/** Where node-llama-cpp is installed, or is to be. Absolute, because its processes run elsewhere. */
export function llamaFolder(config: { data: string; llama: { packageFolder?: string } }): string {
  return resolve(config.llama.packageFolder ?? join(config.data, 'llama'))
}
