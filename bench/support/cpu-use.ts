import { readdirSync, readFileSync } from 'node:fs'
import { treeCpu } from './process-tree.ts'

/**
 * What the threads of a process tree are there for, by the names that their programs give them.
 * `main` is the first thread of each process; `worker` a thread with its own JavaScript, of which
 * the embedded database is the busiest; `ended` what threads used that are gone.
 */
export type ThreadGroup = 'main' | 'JIT' | 'GC' | 'worker' | 'HTTP' | 'other' | 'ended'

/** CPU time of a process tree between two readings. */
export type CpuUse = {
  readonly totalMs: number
  readonly groupMs: Readonly<Record<ThreadGroup, number>>
}

type Thread = { readonly group: ThreadGroup; readonly ms: number }

export type CpuReading = {
  /** By the clock ticks of the processes, threads that ended included. */
  readonly tickedMs: number
  readonly processes: number
  /** By the scheduler's clock, which counts nanoseconds; the key is process and thread. */
  readonly threads: ReadonlyMap<string, Thread>
}

/** The names are cut to their last 15 characters. */
const groupOfName: readonly (readonly [pattern: RegExp, group: ThreadGroup])[] = [
  [/^JIT|^JSCWarmUp|t Helper Thread$|Compiler/, 'JIT'],
  [/^HeapHelper|ollector Thread$|^mi-scavenger|Marking/, 'GC'],
  [/^Worker/, 'worker'],
  [/^HTTP/, 'HTTP'],
]

/** A process counts in ticks, so a difference says nothing about less than one of each. */
const tickMs = 10

/** Of the process and all its descendants, since their start. */
export function readCpu(rootPid: number): CpuReading {
  const members = treeCpu(rootPid)
  return {
    tickedMs: members.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    processes: members.length,
    threads: new Map(members.flatMap(({ pid }) => readThreads(pid))),
  }
}

export function cpuBetween(opened: CpuReading, closed: CpuReading): CpuUse {
  const groupMs = { main: 0, JIT: 0, GC: 0, worker: 0, HTTP: 0, other: 0, ended: 0 }
  let seenMs = 0
  for (const [id, { group, ms }] of closed.threads) {
    const usedMs = ms - (opened.threads.get(id)?.ms ?? 0)
    groupMs[group] += usedMs
    seenMs += usedMs
  }
  const unseenMs = closed.tickedMs - opened.tickedMs - seenMs
  if (unseenMs > tickMs * Math.max(1, closed.processes)) groupMs.ended = unseenMs
  return { totalMs: seenMs + groupMs.ended, groupMs }
}

function readThreads(pid: number): [id: string, thread: Thread][] {
  return tasksOf(pid).flatMap((tid) => {
    const name = readText(`/proc/${pid}/task/${tid}/comm`)
    const schedule = readText(`/proc/${pid}/task/${tid}/schedstat`)
    if (name === undefined || schedule === undefined) return []
    const group = tid === String(pid) ? 'main' : groupOf(name.trim())
    return [[`${pid}/${tid}`, { group, ms: Number(schedule.split(' ')[0]) / 1e6 }]]
  })
}

function groupOf(name: string): ThreadGroup {
  return groupOfName.find(([pattern]) => pattern.test(name))?.[1] ?? 'other'
}

function tasksOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** A thread may end while we look. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
