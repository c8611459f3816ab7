import { readdirSync, readFileSync } from 'node:fs'

/** Resource use of a process and all its descendants. */
export type TreeUsage = { readonly cpuMs: number; readonly processes: number }

const ticksPerSecond = Number(Bun.spawnSync(['getconf', 'CLK_TCK']).stdout.toString()) || 100

/** Resolution of CPU time differences per process, since it is read in clock ticks. */
const cpuResolutionMs = 1000 / ticksPerSecond

/** CPU time of the process tree under `rootPid` since its start, including reaped children. */
export function treeUsage(rootPid: number): TreeUsage {
  const members = treeCpu(rootPid)
  return {
    cpuMs: members.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    processes: members.length,
  }
}

/** CPU time of each process in the tree, root first. */
export function treeCpu(rootPid: number): { readonly pid: number; readonly cpuMs: number }[] {
  return treeOf(rootPid).map(({ pid, cpuTicks }) => ({ pid, cpuMs: cpuTicks * cpuResolutionMs }))
}

/**
 * Memory of the process tree in bytes: private memory of each process plus the largest shared
 * part.
 */
export function treeMemoryBytes(rootPid: number): number {
  const members = treeOf(rootPid).map(({ pid }) => memoryOf(pid))
  const own = members.reduce((sum, member) => sum + member.ownBytes, 0)
  return own + Math.max(0, ...members.map((member) => member.sharedBytes))
}

/**
 * Time in which main threads of the process tree were runnable but had no core; null if the kernel
 * does not report it.
 */
export function treeWaitMs(rootPid: number): number | null {
  const waits = treePids(rootPid).map((pid) => {
    const [, waitNs] = (readText(`/proc/${pid}/schedstat`) ?? '').split(' ')
    return waitNs === undefined ? null : Number(waitNs) / 1e6
  })
  if (waits.includes(null)) return null
  return waits.reduce<number>((sum, waitMs) => sum + (waitMs ?? 0), 0)
}

export function treePids(rootPid: number): number[] {
  return treeOf(rootPid).map(({ pid }) => pid)
}

type Member = { readonly pid: number; readonly parentPid: number; readonly cpuTicks: number }

function treeOf(rootPid: number): Member[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readMember(Number(name)))
  const members = all.filter(({ pid }) => pid === rootPid)
  for (const member of members) {
    members.push(...all.filter(({ parentPid }) => parentPid === member.pid))
  }
  return members
}

/** Fields of /proc/PID/stat, counted after the name in parentheses: proc(5). */
function readMember(pid: number): Member[] {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === undefined) return []
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [utime = 0, stime = 0, childrenUtime = 0, childrenStime = 0] = fields.slice(11, 15)
  const cpuTicks = utime + stime + childrenUtime + childrenStime
  return [{ pid, parentPid: fields[1] ?? 0, cpuTicks }]
}

function memoryOf(pid: number): { ownBytes: number; sharedBytes: number } {
  const rollup = readText(`/proc/${pid}/smaps_rollup`) ?? ''
  const kibibytes = (kind: string) =>
    Number(new RegExp(`^${kind}: +(\\d+) kB`, 'm').exec(rollup)?.[1] ?? 0)
  return {
    ownBytes: (kibibytes('Private_Clean') + kibibytes('Private_Dirty')) * 1024,
    sharedBytes: (kibibytes('Shared_Clean') + kibibytes('Shared_Dirty')) * 1024,
  }
}

/** A process may exit while it is read. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

export type MemorySample = { readonly atMs: number; readonly bytes: number }

/** Samples to ignore after the start. */
export function formatSlope(memory: readonly MemorySample[], samplesMin: number): string {
  if (memory.length < samplesMin) return 'the run is too short to tell'
  return `${slopePerMinute(memory).toFixed(2)} MiB/min`
}

export function toMebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1)
}

/** Least-squares slope of the second half of the samples, in MiB/min. */
export function slopePerMinute(memory: readonly MemorySample[]): number {
  const half = memory.slice(Math.floor(memory.length / 2))
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const meanMs = mean(half.map(({ atMs }) => atMs))
  const meanBytes = mean(half.map(({ bytes }) => bytes))
  const covariance = mean(half.map(({ atMs, bytes }) => (atMs - meanMs) * (bytes - meanBytes)))
  const variance = mean(half.map(({ atMs }) => (atMs - meanMs) ** 2))
  return variance === 0 ? 0 : (covariance / variance / 2 ** 20) * 60_000
}
