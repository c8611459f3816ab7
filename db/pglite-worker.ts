/**
 * A worker thread that serves an embedded cluster on a unix socket in the PostgreSQL protocol. PGlite
 * runs statements synchronously, so on the main thread it would block every stream.
 */
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { openEngine } from './pglite-engine.ts'

export type WorkerRequest =
  | { type: 'open'; clusterFolder: string; socketPath: string }
  | { type: 'close' }
export type WorkerReport =
  | { type: 'open' }
  | { type: 'closed' }
  | { type: 'failed'; reason: string }

/** One client is active at a time; the next may connect before the last has disconnected. */
const connectionsMax = 4

declare const self: Worker

let close = async () => {}

self.onmessage = async ({ data }: MessageEvent<WorkerRequest>) => {
  try {
    report(data.type === 'open' ? await open(data) : await stop())
  } catch (error) {
    report({ type: 'failed', reason: error instanceof Error ? error.message : String(error) })
  }
}

async function open(request: { clusterFolder: string; socketPath: string }): Promise<WorkerReport> {
  const engine = await openEngine(request.clusterFolder)
  const server = new PGLiteSocketServer({
    db: engine,
    path: request.socketPath,
    maxConnections: connectionsMax,
  })
  await server.start()
  close = async () => {
    await server.stop()
    await engine.close()
  }
  return { type: 'open' }
}

async function stop(): Promise<WorkerReport> {
  await close()
  return { type: 'closed' }
}

function report(message: WorkerReport) {
  self.postMessage(message)
}
