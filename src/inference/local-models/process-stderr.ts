import type { Log } from '#telemetry/log.ts'

const stderrLimits = { charsMax: 500, linesMax: 200 }

/** Logs what a model process prints; resolves when it prints no more. */
export async function logStderr(
  stderr: AsyncIterable<Uint8Array>,
  { log, name }: { log: Pick<Log, 'info'>; name: string },
): Promise<void> {
  for await (const line of firstLines(stderr, stderrLimits)) {
    log.info('model process stderr', { model: name, line })
  }
}

/** The first `linesMax` lines of a stream, each truncated to `charsMax`. */
async function* firstLines(
  stream: AsyncIterable<Uint8Array>,
  { charsMax, linesMax }: { charsMax: number; linesMax: number },
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder()
  let rest = ''
  let lines = 0
  for await (const bytes of stream) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = (parts.pop() ?? '').slice(0, charsMax)
    for (const part of parts.filter((line) => line.trim() !== '')) {
      // Further lines are read and dropped, so that the process does not block.
      if (lines++ < linesMax) yield part.slice(0, charsMax)
    }
  }
  if (rest.trim() !== '' && lines < linesMax) yield rest
}
