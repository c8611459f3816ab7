import { join } from 'node:path'
import type { Config } from '#config/schema.ts'
import type { DownloadLine, InstallRequest } from '#installer/installer.ts'
import type { Download } from '#installer/store.ts'
import type { TestPlace } from '#test/support/database.ts'

export type ProcessTask = {
  readonly place: Pick<TestPlace, 'databaseUrl' | 'dataFolder'>
  readonly folder: string
  readonly settings: Partial<Config['installer']>
  readonly request: InstallRequest
  /** Of a model that is already downloaded. */
  readonly downloadId?: string
  /** Whether a paused download is resumed. */
  readonly isResumed?: boolean
}

type ProgressUpdate = Omit<Download, 'startedAt' | 'updatedAt' | 'finishedAt'> & {
  readonly lines: readonly DownloadLine[]
}

export type InstallProcess = {
  /** All updates so far. */
  readonly updates: readonly ProgressUpdate[]
  /** The first matching update; throws if the process ends before it. */
  until(is: (updates: ProgressUpdate) => boolean): Promise<ProgressUpdate>
  /** SIGKILL. */
  kill(): Promise<void>
  readonly exited: Promise<number>
}

const program = join(import.meta.dir, 'program.ts')

/** `before` is a command prefix, such as one that limits the process. */
export function startInstallProcess(
  task: ProcessTask,
  before: readonly string[] = [],
): InstallProcess {
  const child = Bun.spawn([...before, process.execPath, program, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const updates: ProgressUpdate[] = []
  const complaints = new Response(child.stderr).text()
  const lines = readLines(child.stdout)
  return {
    updates,
    async until(is) {
      for (;;) {
        const { value, done } = await lines.next()
        if (done)
          throw new Error(`the process ended: ${JSON.stringify(updates.at(-1))}
          ${await complaints}`)
        const next: ProgressUpdate = JSON.parse(value)
        updates.push(next)
        if (is(next)) return next
      }
    },
    async kill() {
      child.kill('SIGKILL')
      await child.exited
    },
    exited: child.exited,
  }
}

async function* readLines(pipe: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of pipe) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
