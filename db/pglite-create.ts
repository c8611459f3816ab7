import { openEngine } from './pglite-engine.ts'

/**
 * Creates an embedded cluster in a folder. In a process of its own, because it needs up to 0.9 GB for
 * two seconds, which a thread would not return.
 */
export async function createCluster(folder: string): Promise<void> {
  const engine = await openEngine(folder)
  await engine.close()
}
