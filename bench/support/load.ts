import { join } from 'node:path'
import { startChild } from './children.ts'
import type { LoadJob, LoadProgress, LoadReport } from './load-job.ts'
import { readPort } from './ready-port.ts'
import type { SpeechJob, SpeechProgress, SpeechReport } from './speech-job.ts'

const benchFolder = join(import.meta.dir, '..')

/** Starts the mock upstream in a process of its own; returns its port. */
export function startMockUpstream(lifetimeS: number, port = 0): Promise<number> {
  return startServer('mock-upstream.ts', [String(lifetimeS), String(port)])
}

/** Starts a benchmark server that prints `{"port":…}`; returns its port. */
export function startServer(script: string, args: readonly string[]): Promise<number> {
  const command = [process.execPath, join(benchFolder, script), ...args]
  return readPort(startChild(command, { stdin: 'pipe' }), script)
}

/** Runs a job in a load client process. */
export function runLoad(
  job: LoadJob,
  onProgress?: (progress: LoadProgress['progress']) => void,
): Promise<LoadReport> {
  const { progressMs, ...unheard } = job
  return runClient('load-client.ts', onProgress === undefined ? unheard : job, onProgress)
}

/** Runs the speech clients of a job in a process. */
export function runSpeechLoad(
  job: SpeechJob,
  onProgress: (progress: SpeechProgress['progress']) => void,
): Promise<SpeechReport> {
  return runClient('speech-load.ts', job, onProgress)
}

/** Runs a job in a program that follows the `serveJob` protocol. */
export async function runClient<Report, Progress = never>(
  script: string,
  job: object,
  onProgress?: (progress: Progress) => void,
): Promise<Report> {
  const child = startChild([process.execPath, join(benchFolder, script)], {
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
  const output = await new Response(stdout).text()
  await child.exited
  await following
  if (output === '') throw new Error(`the load client ended with ${child.exitCode} and no report`)
  // Clients print only their report.
  return JSON.parse(output) as Report
}

async function followProgress<Progress>(
  lines: ReadableStream<Uint8Array>,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let unread = ''
  for await (const bytes of lines) {
    const parts = (unread + decoder.decode(bytes, { stream: true })).split('\n')
    unread = parts.pop() ?? ''
    for (const line of parts) {
      // A line of the client; other output, such as a crash, is passed on.
      if (line.startsWith('{"progress"')) {
        onProgress((JSON.parse(line) as { progress: Progress }).progress)
      } else console.error(line)
    }
  }
}
