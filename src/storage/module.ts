import { type Foundation, module } from '#module.ts'
import { openStorage } from './open-storage.ts'

/** Where the contents of files are stored. */
export const storageModule = module({
  name: 'storage',
  start: async ({ config, now }: Foundation) => ({
    services: { storage: await openStorage(config, now) },
  }),
})
