import { join } from 'node:path'
import { isRecord } from '#lib/json.ts'
import { startChild } from './children.ts'
import type { LoadJob, LoadProgress, LoadReport } from './load-job.ts'

const benchFolder = join(import.meta.dir, '..')

/** Starts the mock upstream in its own process; gives the port that it listens on. */
export async function startMockUpstream(lifetimeS: number): Promise<number> {
  const script = join(benchFolder, 'mock-upstream.ts')
  const child = startChild([process.execPath, script, String(lifetimeS)], { stdin: 'pipe' })
  const { stdout } = child
  if (!(stdout instanceof ReadableStream)) throw new Error('the mock upstream has no output')
  const { value } = await stdout.getReader().read()
  const ready: unknown = JSON.parse(new TextDecoder().decode(value))
  return isRecord(ready) ? Number(ready['port']) : Number.NaN
}

/** Runs one job in a load client of its own process. */
export async function runLoad(
  job: LoadJob,
  onProgress?: (progress: LoadProgress['progress']) => void,
): Promise<LoadReport> {
  const script = join(benchFolder, 'load-client.ts')
  const child = startChild([process.execPath, script], {
    stdin: 'pipe',
    stderr: onProgress === undefined ? 'inherit' : 'pipe',
  })
  const { stdin, stdout, stderr } = child
  if (stdin === undefined || typeof stdin === 'number' || !(stdout instanceof ReadableStream)) {
    throw new Error('the load client has no pipes')
  }
  stdin.write(`${JSON.stringify(job)}\n`)
  await stdin.flush()
  const following =
    onProgress !== undefined && stderr instanceof ReadableStream
      ? followProgress(stderr, onProgress)
      : undefined
  const answer = await new Response(stdout).text()
  await child.exited
  await following
  if (answer === '') throw new Error(`the load client ended with ${child.exitCode} and no report`)
  // The load client prints nothing but a LoadReport.
  return JSON.parse(answer) as LoadReport
}

async function followProgress(
  lines: ReadableStream<Uint8Array>,
  onProgress: (progress: LoadProgress['progress']) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let unread = ''
  for await (const bytes of lines) {
    const parts = (unread + decoder.decode(bytes, { stream: true })).split('\n')
    unread = parts.pop() ?? ''
    for (const line of parts) {
      // A line of the client itself; what a crash prints is passed on as it is.
      if (line.startsWith('{"progress"')) onProgress((JSON.parse(line) as LoadProgress).progress)
      else console.error(line)
    }
  }
}
