import type { Limits } from '#limits/admission.ts'
import { type Foundation, module } from '#module.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import type { Storage } from '#storage/storage.ts'
import { downloadEndpoints } from './content/download-endpoints.ts'
import { createReceiver, type Receiver } from './content/receive.ts'
import { uploadEndpoints } from './content/upload-endpoints.ts'
import { fileEndpoints } from './file-endpoints.ts'
import { folderEndpoints } from './folder-endpoints.ts'
import { listingEndpoints } from './listing/endpoints.ts'
import { fileShareEndpoints } from './shares/endpoints.ts'
import { createShares, type Shares } from './shares/shares.ts'
import { startFileSweep } from './trash/trash.ts'
import { createFiles, type Files } from './tree.ts'
import { uploadPartsEndpoints } from './uploads/endpoints.ts'
import { createUploads, type Uploads } from './uploads/uploads.ts'

type Needs = {
  storage: Storage
  collections: Pick<Collections, 'fileHooks'>
  limits: Pick<Limits, 'storedBytesOf'>
}

/** Files, folders and their shares. */
export const filesModule = module({
  name: 'files',
  tags: {
    Files: 'Files and folders.',
    Uploads: 'Files that are sent in parts.',
    Sharing: 'Permissions of users and groups on files and folders.',
  },
  start(needs: Foundation & Needs) {
    const { config, settings, log, database, storage, collections, now } = needs
    const deps = { database, storage, settings, hooks: collections.fileHooks, now }
    const sweep = startFileSweep({ ...deps, log })
    const files = createFiles({
      ...deps,
      limits: config.files,
      storedBytesMax: needs.limits.storedBytesOf,
    })
    const receiver = createReceiver({ files, storage, settings, config })
    return {
      services: {
        files,
        receiver,
        uploads: createUploads({ files, database, storage, settings, receiver, now }),
        shares: createShares({ database, now }),
      },
      close: () => sweep.stop(),
    }
  },
  endpoints: (
    services: Foundation & {
      files: Files
      receiver: Receiver
      uploads: Uploads
      shares: Shares
      storage: Storage
    },
  ) => [
    ...listingEndpoints(services),
    ...uploadEndpoints({ ...services, ...services.receiver }),
    ...uploadPartsEndpoints({ ...services, ...services.receiver }),
    ...downloadEndpoints(services),
    ...fileEndpoints(services),
    ...folderEndpoints(services),
    ...fileShareEndpoints(services),
  ],
})
