/** Far more than a session may have in flight. */
const waitingBytesMax = 8_388_608

/**
 * Writes to the input of a program as fast as it reads. Each write is awaited until the pipe has
 * accepted it, because Bun buffers without a limit. Owns the pipe. `onOverflow` is called once.
 */
export class ProgramInput {
  readonly #sink: Bun.FileSink
  readonly #onOverflow: () => void
  readonly #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #isEnding = false
  #isOver = false
  #isWriting = false

  constructor(sink: Bun.FileSink, onOverflow: () => void) {
    this.#sink = sink
    this.#onOverflow = onOverflow
  }

  write(bytes: Uint8Array) {
    if (this.#isEnding || this.#isOver) return
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes > waitingBytesMax) {
      this.close()
      return this.#onOverflow()
    }
    this.#waiting.push(bytes)
    void this.#writeWaiting()
  }

  /** Closes the pipe after the waiting bytes were written. */
  end(): void {
    this.#isEnding = true
    void this.#writeWaiting()
  }

  /** Drops waiting bytes and closes the pipe. */
  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#waiting.length = 0
    void this.#endPipe()
  }

  async #writeWaiting(): Promise<void> {
    if (this.#isWriting) return
    this.#isWriting = true
    try {
      for (let bytes = this.#waiting.shift(); bytes; bytes = this.#waiting.shift()) {
        this.#waitingBytes -= bytes.length
        this.#sink.write(bytes)
        await this.#sink.flush()
      }
      if (this.#isEnding) this.close()
    } catch {
      // The program has exited; the exit handler reports it.
      this.close()
    } finally {
      this.#isWriting = false
    }
  }

  async #endPipe(): Promise<void> {
    try {
      await this.#sink.end()
    } catch {
      // The program has exited.
    }
  }
}

/**
 * Calls back with every non-blank line of a stream. Of a line longer than `charsMax`, the beginning
 * is passed immediately (`isComplete` is false) and the rest is skipped, to limit memory. Resolves
 * at the end of the stream, whose last line needs no newline.
 */
export async function readLines(
  stream: AsyncIterable<Uint8Array>,
  charsMax: number,
  onLine: (line: string, isComplete: boolean) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  let isSkipping = false
  const endLine = (line: string) => {
    if (isSkipping) isSkipping = false
    else if (line.length > charsMax) onLine(line.slice(0, charsMax), false)
    else if (line.trim() !== '') onLine(line.trim(), true)
  }
  for await (const piece of stream) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) endLine(part)
    if (rest.length <= charsMax) continue
    if (!isSkipping) onLine(rest.slice(0, charsMax), false)
    isSkipping = true
    rest = ''
  }
  endLine(rest)
}
