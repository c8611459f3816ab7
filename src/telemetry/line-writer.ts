/** Where lines go: `process.stdout`, or anything that is written to like it. */
export type LineOutput = {
  write(text: string, written: (error?: Error | null) => void): unknown
  on(event: 'error', listener: () => void): unknown
}

/** Writes lines in batches, and never holds more of them than `pendingCharsMax`. */
export type LineWriter = {
  /** Takes one line, without its newline. */
  write(line: string): void
  /** Resolves when everything has gone out, or cannot: the reader stalls, or has left. */
  flush(): Promise<void>
}

/**
 * PIPE_BUF of Linux: what is no longer than this enters a pipe as a whole or not at all, so the
 * lines of processes that share one are not torn.
 */
const batchCharsMax = 4_096
/** What a reader that stalls may leave behind; further lines are dropped, and counted. */
const pendingCharsMax = 1_048_576
/** A reader that takes nothing for so long is not waited for at the end. */
const stallMs = 1_000

/** `onDropped` is told how many lines were dropped, once there is room for it to say so. */
export function createLineWriter(
  output: LineOutput,
  onDropped: (lineCount: number) => void,
): LineWriter {
  let pending: string[] = []
  let sent = 0
  let pendingChars = 0
  let dropped = 0
  let hasLeft = false
  let writing: Promise<void> | null = null

  function takeBatch(): string {
    let batch = ''
    for (; sent < pending.length; sent++) {
      const line = pending[sent] ?? ''
      if (batch !== '' && batch.length + line.length >= batchCharsMax) break
      batch += `${line}\n`
    }
    pendingChars -= batch.length
    // Not every time, because it costs as much as there are lines left.
    if (sent * 2 >= pending.length) {
      pending = pending.slice(sent)
      sent = 0
    }
    return batch
  }

  async function writeAll(): Promise<void> {
    // Lines of one turn of the event loop go out together.
    await new Promise((resolve) => setImmediate(resolve))
    while (pendingChars > 0 && !hasLeft) {
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
    if (hasLeft) return
    if (pendingChars + line.length >= pendingCharsMax) {
      dropped++
      return
    }
    pending.push(line)
    pendingChars += line.length + 1
    writing ??= writeAll()
  }

  output.on('error', () => {
    hasLeft = true
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
