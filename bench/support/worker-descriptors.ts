import { readdirSync } from 'node:fs'
import { treePids } from './process-tree.ts'

/** How many descriptors each worker of a gateway has open, in the order of their process ids. */
export function workerDescriptors(supervisorPid: number): number[] {
  const [, ...workers] = treePids(supervisorPid).toSorted((one, other) => one - other)
  return workers.map((pid) => readdirSync(`/proc/${pid}/fd`).length)
}
