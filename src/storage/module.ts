import { type Foundation, module } from '#module.ts'
import { storage } from './doctor.ts'
import { openStorage } from './storage.ts'

/** Stores the contents of files. */
export const storageModule = module({
  name: 'storage',
  doctor: storage,
  start: async ({ config, now }: Foundation) => ({
    services: { storage: await openStorage(config, now) },
  }),
})
