import { readdirSync } from 'node:fs'
import { treePids } from './process-tree.ts'

/** Open descriptors of each worker, ordered by process id. */
export function workerDescriptors(supervisorPid: number): number[] {
  const [, ...workers] = treePids(supervisorPid).toSorted((one, other) => one - other)
  return workers.map((pid) => readdirSync(`/proc/${pid}/fd`).length)
}
