import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { treePids } from './process-tree.ts'

const termGraceMs = 5_000

/** The processes that this one started and that may still run. Only they are ever ended. */
const running = new Set<Subprocess>()
const folders = new Set<string>()
/** What is left to do when the processes have ended. */
const cleanUps: (() => Promise<void>)[] = []

export type ChildOptions = {
  readonly cwd?: string
  readonly env?: Record<string, string>
  readonly stdin?: 'pipe' | 'ignore'
  readonly stderr?: 'pipe' | 'inherit'
  /** Standard output and error go to this file. */
  readonly logFile?: string
}

/** Starts a process that is ended with this one at the latest. */
export function startChild(command: string[], options: ChildOptions = {}): Subprocess {
  const { logFile } = options
  const child = Bun.spawn(command, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: options.env ?? basicEnvironment(),
    stdin: options.stdin ?? 'ignore',
    stdout: logFile === undefined ? 'pipe' : Bun.file(logFile),
    stderr: logFile === undefined ? (options.stderr ?? 'inherit') : Bun.file(logFile),
  })
  running.add(child)
  child.exited.finally(() => running.delete(child)).catch(() => undefined)
  return child
}

/** Nothing of the caller's settings leaks into what is measured. */
export function basicEnvironment(): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR } = process.env
  return { PATH, HOME, ...(TMPDIR === undefined ? {} : { TMPDIR }) }
}

/** Asks the process to stop; after a grace period its whole tree is killed, each by its id. */
async function stopChild(child: Subprocess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const pids = treePids(child.pid)
  child.kill('SIGTERM')
  const stopped = await Promise.race([
    child.exited.then(() => true),
    Bun.sleep(termGraceMs).then(() => false),
  ])
  if (!stopped) for (const pid of pids) kill(pid, 'SIGKILL')
  await child.exited
}

export async function stopChildren(): Promise<void> {
  await Promise.all([...running].map((child) => stopChild(child)))
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()))
}

/** Has something done once the children were stopped, such as the removal of their database. */
export function afterChildren(cleanUp: () => Promise<void>): void {
  cleanUps.push(cleanUp)
}

/** Call once: an interrupt ends the children first, and no exit leaves one behind. */
export function endChildrenWithThisProcess(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stopChildren()
        .finally(() => process.exit(130))
        .catch(() => undefined)
    })
  }
  process.on('exit', () => {
    for (const child of running) kill(child.pid, 'SIGTERM')
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })
}

/** A folder that is removed when this process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  folders.add(folder)
  return folder
}

function kill(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already.
  }
}

/** A port that was free a moment ago, for programs that cannot pick one and tell it. */
export function freePort(): number {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  const { port } = server
  server.stop(true)
  return port
}

/** The end of a log, for the message about a program that did not start. */
export function logTail(path: string, linesMax = 20): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-linesMax).join('\n')
}

/** A program that a bench needs did not start; the message says why as far as it is known. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/**
 * Polls until `isReady` says so; throws a `StartError` with what `explain` says when the process
 * ends or time is up.
 */
export async function waitUntil(options: {
  readonly child: Subprocess
  readonly deadlineMs: number
  readonly isReady: () => Promise<boolean>
  readonly explain: () => string
}): Promise<void> {
  const endMs = performance.now() + options.deadlineMs
  for (;;) {
    if (await options.isReady().catch(() => false)) return
    const ended = options.child.exitCode !== null || options.child.signalCode !== null
    if (ended || performance.now() > endMs) throw new StartError(options.explain())
    await Bun.sleep(20)
  }
}
