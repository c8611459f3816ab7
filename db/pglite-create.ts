/**
 * A program: creates an embedded cluster in the folder that is its argument. It is a process of its
 * own because it needs up to 0.9 GB for two seconds, which a thread would not give back.
 */
import { openEngine } from './pglite-engine.ts'

const clusterFolder = Bun.argv[2]
if (clusterFolder === undefined) throw new Error('usage: pglite-create <folder>')
const engine = await openEngine(clusterFolder)
await engine.close()
