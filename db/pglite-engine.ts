import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'

/** The default of 128 MB costs as much resident memory and a second of the first start. */
const sharedBuffers = '16MB'
/**
 * Open files. The engine is in the same process, so the default of 1000 would reduce the descriptors
 * for streams.
 */
const openFilesMax = 192

/** Larger batches of full text index entries block all readers for seconds when they are merged. */
const pendingIndexEntries = '256kB'

/** Opens the cluster in the folder; creates it if the folder is empty. */
export function openEngine(clusterFolder: string): Promise<PGlite> {
  return PGlite.create({
    dataDir: clusterFolder,
    extensions: { vector },
    startParams: [
      ...PGlite.defaultStartParams,
      ...['-c', `shared_buffers=${sharedBuffers}`],
      ...['-c', `max_files_per_process=${openFilesMax}`],
      ...['-c', `gin_pending_list_limit=${pendingIndexEntries}`],
    ],
    initDbStartParams: ['--no-sync', '--wal-segsize=4', '-c', `shared_buffers=${sharedBuffers}`],
  })
}
