import { rm } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { type Extension, PGlite } from '@electric-sql/pglite'
import initdb from '@electric-sql/pglite/initdb.wasm' with { type: 'file' }
import postgresFiles from '@electric-sql/pglite/pglite.data' with { type: 'file' }
import postgres from '@electric-sql/pglite/pglite.wasm' with { type: 'file' }
import { readOwnFile } from '#lib/own-program.ts'
// The package does not export the path of its file.
import vectorFiles from '../node_modules/@electric-sql/pglite-pgvector/dist/vector.tar.gz' with {
  type: 'file',
}

/** The default of 128 MB costs as much resident memory and a second of the first start. */
const sharedBuffers = '16MB'
/**
 * Open files. The engine is in the same process, so the default of 1000 would reduce the descriptors
 * for streams.
 */
const openFilesMax = 192

/** Larger batches of full text index entries block all readers for seconds when they are merged. */
const pendingIndexEntries = '256kB'

/** PGlite streams the archive, and the files inside a binary cannot be streamed: it gets a copy. */
const archiveSuffix = '.vector.tar.gz'

/** Opens the cluster in the folder; creates it if the folder is empty. */
export async function openEngine(clusterFolder: string): Promise<PGlite> {
  const archive = clusterFolder + archiveSuffix
  const [files, pgliteWasmModule, initdbWasmModule] = await Promise.all([
    readOwnFile(postgresFiles),
    compile(postgres),
    compile(initdb),
    readOwnFile(vectorFiles).then((bytes) => Bun.write(archive, bytes)),
  ])
  const engine = await PGlite.create({
    dataDir: clusterFolder,
    fsBundle: new Blob([files]),
    pgliteWasmModule,
    initdbWasmModule,
    extensions: { vector: vectorFrom(archive) },
    startParams: [
      ...PGlite.defaultStartParams,
      ...['-c', `shared_buffers=${sharedBuffers}`],
      ...['-c', `max_files_per_process=${openFilesMax}`],
      ...['-c', `gin_pending_list_limit=${pendingIndexEntries}`],
    ],
    initDbStartParams: ['--no-sync', '--wal-segsize=4', '-c', `shared_buffers=${sharedBuffers}`],
  })
  await rm(archive, { force: true })
  return engine
}

function vectorFrom(archive: string): Extension {
  const bundlePath = pathToFileURL(archive)
  return {
    name: 'vector',
    setup: async (_engine, emscriptenOpts) => ({ emscriptenOpts, bundlePath }),
  }
}

async function compile(path: string): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await readOwnFile(path))
}
