/** The destination: `process.stdout` or a compatible stream. */
export type LineOutput = {
  write(text: string, written: (error?: Error | null) => void): unknown
  on(event: 'error', listener: () => void): unknown
}

/** Writes lines in batches and buffers at most `pendingCharsMax` characters. */
export type LineWriter = {
  /** Queues one line, given without its newline. */
  write(line: string): void
  /** Resolves when all lines are written, or the reader has stalled or disconnected. */
  flush(): Promise<void>
}

/**
 * PIPE_BUF of Linux: writes up to this size are atomic, so lines of processes that share a pipe are
 * not interleaved.
 */
const batchCharsMax = 4_096
/** Lines of this time are written together: at 10,000 requests/s, a write for each turn costs 3 %. */
const lingerMs = 5
/** The most that is buffered for a stalled reader; further lines are dropped and counted. */
const pendingCharsMax = 1_048_576
/** `flush` gives up on a reader that accepts nothing for this long. */
const stallMs = 1_000

/** `onDropped` gets the number of dropped lines once the buffer has space to log it. */
export function createLineWriter(
  output: LineOutput,
  onDropped: (lineCount: number) => void,
): LineWriter {
  let pending: string[] = []
  let sent = 0
  let pendingChars = 0
  let dropped = 0
  let hasDisconnected = false
  let writing: Promise<void> | null = null

  function takeBatch(): string {
    let batch = ''
    for (; sent < pending.length; sent++) {
      const line = pending[sent] ?? ''
      if (batch !== '' && batch.length + line.length >= batchCharsMax) break
      batch += `${line}\n`
    }
    pendingChars -= batch.length
    // Amortised: copying the remaining lines after every batch would be quadratic.
    if (sent * 2 >= pending.length) {
      pending = pending.slice(sent)
      sent = 0
    }
    return batch
  }

  async function writeAll(): Promise<void> {
    await Bun.sleep(lingerMs)
    while (pendingChars > 0 && !hasDisconnected) {
      await new Promise<void>((resolve) => output.write(takeBatch(), () => resolve()))
      reportDropped()
    }
    writing = null
  }

  function reportDropped(): void {
    if (dropped === 0 || pendingChars > pendingCharsMax / 2) return
    const count = dropped
    dropped = 0
    onDropped(count)
  }

  function write(line: string): void {
    if (hasDisconnected) return
    if (pendingChars + line.length >= pendingCharsMax) {
      dropped++
      return
    }
    pending.push(line)
    pendingChars += line.length + 1
    writing ??= writeAll()
  }

  output.on('error', () => {
    hasDisconnected = true
    pending = []
    pendingChars = 0
  })
  return {
    write,
    async flush() {
      for (let before = -1; writing !== null && before !== pendingChars; ) {
        before = pendingChars
        await Promise.race([writing, Bun.sleep(stallMs)])
      }
    },
  }
}
