import { readdirSync, readFileSync } from 'node:fs'
import { treeCpu } from './process-tree.ts'

/**
 * Thread groups of a process tree, by thread name. `main`: the first thread of each process;
 * `worker`: threads with their own JavaScript, mostly PGlite; `ended`: threads that exited.
 */
export type ThreadGroup = 'main' | 'JIT' | 'GC' | 'worker' | 'HTTP' | 'other' | 'ended'

/** CPU time of a process tree between two samples. */
export type CpuUse = {
  readonly totalMs: number
  readonly groupMs: Readonly<Record<ThreadGroup, number>>
}

type Thread = { readonly group: ThreadGroup; readonly ms: number }

export type CpuSample = {
  /** From process clock ticks, including exited threads. */
  readonly tickedMs: number
  readonly processes: number
  /** From the scheduler, in nanoseconds, by process and thread. */
  readonly threads: ReadonlyMap<string, Thread>
}

/** The kernel truncates names to 15 characters. */
const groupOfName: readonly (readonly [pattern: RegExp, group: ThreadGroup])[] = [
  [/^JIT|^JSCWarmUp|t Helper Thread$|Compiler/, 'JIT'],
  [/^HeapHelper|ollector Thread$|^mi-scavenger|Marking/, 'GC'],
  [/^Worker/, 'worker'],
  [/^HTTP/, 'HTTP'],
]

/** Process times have tick resolution, so smaller differences are noise. */
const tickMs = 10

/** The process and all descendants, since their start. */
export function readCpu(rootPid: number): CpuSample {
  const members = treeCpu(rootPid)
  return {
    tickedMs: members.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    processes: members.length,
    threads: new Map(members.flatMap(({ pid }) => readThreads(pid))),
  }
}

export function cpuBetween(opened: CpuSample, closed: CpuSample): CpuUse {
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
    const group = tid === String(pid) ? 'main' : threadGroupOf(name.trim())
    return [[`${pid}/${tid}`, { group, ms: Number(schedule.split(' ')[0]) / 1e6 }]]
  })
}

/** The group of a thread that is not the first one of its process, by its name. */
export function threadGroupOf(name: string): ThreadGroup {
  return groupOfName.find(([pattern]) => pattern.test(name))?.[1] ?? 'other'
}

function tasksOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** A thread may exit while it is read. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
