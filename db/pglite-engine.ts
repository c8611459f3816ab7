import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'

/** PGlite's default of 128 MB costs that much resident memory and a second of the first start. */
const sharedBuffers = '16MB'
/**
 * Files that it keeps open; the default of 1000 would come out of those of streams, since it is
 * in the same process.
 */
const openFilesMax = 192

/** Opens the cluster in the folder, and creates it there if the folder is empty. */
export function openEngine(clusterFolder: string): Promise<PGlite> {
  return PGlite.create({
    dataDir: clusterFolder,
    extensions: { vector },
    startParams: [
      ...PGlite.defaultStartParams,
      ...['-c', `shared_buffers=${sharedBuffers}`],
      ...['-c', `max_files_per_process=${openFilesMax}`],
    ],
    initDbStartParams: ['--no-sync', '--wal-segsize=4', '-c', `shared_buffers=${sharedBuffers}`],
  })
}
