/**
 * Creates an embedded cluster in the folder given as argument. A separate process, because it needs
 * up to 0.9 GB for two seconds, which a thread would not return.
 */
import { openEngine } from './pglite-engine.ts'

const clusterFolder = Bun.argv[2]
if (clusterFolder === undefined) throw new Error('usage: pglite-create <folder>')
const engine = await openEngine(clusterFolder)
await engine.close()
