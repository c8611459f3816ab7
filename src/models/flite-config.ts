import { join, resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import { flag, section, text, whole } from '#config/keys.ts'

/** The default name of the upstream of voices on this machine. */
export const fliteUpstreamName = 'local-voice'

/** The keys of voices on this machine. */
export const fliteKeys = {
  flite: section('Speaking texts on this machine with Flite, in English.', {
    enabled: flag(
      'Whether the model "flite" is offered once `bun run voice:install` was run: by an upstream named "local-voice", unless there is an [[upstream]] with api = "flite".',
      true,
    ),
    packageFolder: Type.Optional(
      text('Folder in which Flite is installed. Default: the folder flite in the data folder.', {
        env: 'SLUICE_FLITE_PACKAGE',
      }),
    ),
    processesMax: whole('Texts spoken at a time, each in its own process, in each worker.', {
      default: 2,
      minimum: 1,
      maximum: 64,
    }),
    queueMax: whole('Texts that wait for a process; more are refused with 503.', {
      default: 32,
      minimum: 0,
    }),
  }),
}

/** The folder of Flite; absolute, because its processes have another working directory. */
export function fliteFolder(config: { data: string; flite: { packageFolder?: string } }): string {
  return resolve(config.flite.packageFolder ?? join(config.data, 'flite'))
}
