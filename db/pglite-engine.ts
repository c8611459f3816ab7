import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'

/** PGlite's default of 128 MB costs that much resident memory and a second of the first start. */
const sharedBuffers = '16MB'

/** Opens the cluster in the folder, and creates it there if the folder is empty. */
export function openEngine(clusterFolder: string): Promise<PGlite> {
  return PGlite.create({
    dataDir: clusterFolder,
    extensions: { vector },
    startParams: [...PGlite.defaultStartParams, '-c', `shared_buffers=${sharedBuffers}`],
    initDbStartParams: ['--no-sync', '--wal-segsize=4', '-c', `shared_buffers=${sharedBuffers}`],
  })
}
