import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import type { Collections } from '#retrieval/collections/collections.ts'
import type { Storage } from '#storage/storage.ts'
import { downloadRoutes } from './content/download-routes.ts'
import { uploadRoutes } from './content/upload-routes.ts'
import { listingRoutes } from './listing/routes.ts'
import { fileRoutes, folderRoutes } from './routes.ts'
import { fileShareRoutes, principalRoutes } from './shares/routes.ts'
import { createShares, type Shares } from './shares/shares.ts'
import { startFileSweep } from './trash/sweep.ts'
import { createFiles, type Files } from './tree.ts'

/** Files and folders, and whom they are shared with. */
export const filesModule = module({
  name: 'files',
  start(needs: Foundation & { storage: Storage; collections: Pick<Collections, 'fileHooks'> }) {
    const { config, log, database, storage, collections, now } = needs
    const stored = { database, storage, settings: config.files, hooks: collections.fileHooks, now }
    const sweep = startFileSweep({ ...stored, log })
    return {
      services: { files: createFiles(stored), shares: createShares({ database, now }) },
      close: () => sweep.stop(),
    }
  },
  routes: (
    services: Foundation & {
      auth: Auth
      files: Files
      shares: Shares
      storage: Storage
      collections: Collections
    },
  ) => [
    listingRoutes(services),
    uploadRoutes(services),
    downloadRoutes(services),
    fileRoutes(services),
    folderRoutes(services),
    fileShareRoutes(services),
    principalRoutes(services),
  ],
})
