import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { treePids } from './process-tree.ts'

const termGraceMs = 5_000

/** Child processes that may still run. Only these are ever stopped. */
const running = new Set<Subprocess>()
const folders = new Set<string>()
/** Clean-ups to run after the children have stopped. */
const cleanUps: (() => Promise<void>)[] = []

export type ChildOptions = {
  readonly cwd?: string
  readonly env?: Record<string, string>
  readonly stdin?: 'pipe' | 'ignore'
  readonly stderr?: 'pipe' | 'inherit'
  /** File for standard output and error. */
  readonly logFile?: string
  /** File for standard error alone. */
  readonly stderrFile?: string
}

/** Starts a child process that never outlives this one. */
export function startChild(command: string[], options: ChildOptions = {}): Subprocess {
  const { logFile, stderrFile = logFile } = options
  const child = Bun.spawn(command, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: options.env ?? basicEnvironment(),
    stdin: options.stdin ?? 'ignore',
    stdout: logFile === undefined ? 'pipe' : Bun.file(logFile),
    stderr: stderrFile === undefined ? (options.stderr ?? 'inherit') : Bun.file(stderrFile),
  })
  running.add(child)
  child.exited.finally(() => running.delete(child)).catch(() => undefined)
  return child
}

/** A minimal environment, so that the caller's settings do not affect the measurement. */
export function basicEnvironment(): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR } = process.env
  return { PATH, HOME, ...(TMPDIR === undefined ? {} : { TMPDIR }) }
}

/** Stops the process; after a grace period kills its whole tree, each by its id. */
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

/** Runs after the children have stopped, for example to drop their database. */
export function afterChildren(cleanUp: () => Promise<void>): void {
  cleanUps.push(cleanUp)
}

/** Call once: on interrupt and exit, all children are stopped. */
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

/** A temporary folder that is removed at exit. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  folders.add(folder)
  return folder
}

function kill(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Already exited.
  }
}

/** End of a log, for error messages about failed starts. */
export function logTail(path: string, linesMax = 20): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-linesMax).join('\n')
}

/** A required program failed to start. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/**
 * Polls until `isReady`; throws a `StartError` with `explain()` if the process exits or the
 * deadline passes.
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
