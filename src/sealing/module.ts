import { type Foundation, module } from '#module.ts'
import { createSealer } from './sealer.ts'

/** Encryption of what clients keep for the gateway. */
export const sealingModule = module({
  name: 'sealing',
  start: async ({ config, database }: Foundation) => ({
    services: { sealer: await createSealer({ sealKeys: config.sealKeys, database }) },
  }),
})
