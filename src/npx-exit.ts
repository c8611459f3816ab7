import { readFileSync } from 'node:fs'
import { isStartedByNpm } from './config/load.ts'

const checkMs = 2_000

/**
 * Calls `stop` once npx has exited. npx signals only its shell, which exits and leaves `bun start`,
 * the parent of this process, to init. Started in any other way, nothing is watched: a server may
 * outlive the shell that started it.
 */
export function onNpxExit(stop: () => void): void {
  if (!isStartedByNpm()) return
  const launcher = statusOf(process.ppid)
  // `npm start` has no `bun start` between, and passes signals on.
  if (!launcher?.name.startsWith('bun')) return
  const timer = setInterval(() => {
    if (statusOf(process.ppid)?.parent === launcher.parent) return
    clearInterval(timer)
    stop()
  }, checkMs)
  timer.unref()
}

/** Null if the process does not exist. */
function statusOf(pid: number): { parent: string; name: string } | null {
  const found = process.platform === 'linux' ? linuxStatus(pid) : portableStatus(pid)
  const { parent, name } = found?.groups ?? {}
  return parent === undefined || name === undefined ? null : { parent, name }
}

function linuxStatus(pid: number): RegExpExecArray | null {
  try {
    return /\((?<name>.+)\) \S (?<parent>\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return null
  }
}

function portableStatus(pid: number): RegExpExecArray | null {
  const { stdout } = Bun.spawnSync(['ps', '-o', 'ppid=,comm=', '-p', String(pid)])
  return /^ *(?<parent>\d+) (?:.*\/)?(?<name>[^/\n]+)$/m.exec(stdout.toString())
}
