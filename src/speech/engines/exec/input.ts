/** What goes into a program, at the speed at which it takes it. */
export type Input = {
  write(bytes: Uint8Array): void
  /** Nothing more comes: what waits is written, then the end. */
  end(): void
  /** Gives up what waits. */
  close(): void
}

/** Far more than a session may have in flight; who is not held to that is not held at all. */
const waitingBytesMax = 8_388_608

/**
 * One write at a time, each awaited until the pipe took it: Bun keeps what a pipe does not take, and
 * without a limit. `overfull` is called once, when too much waits.
 */
export function createInput(sink: Bun.FileSink, overfull: () => void): Input {
  const waiting: Uint8Array[] = []
  let waitingBytes = 0
  let isEnding = false
  let isOver = false
  let isPumping = false

  async function pump() {
    if (isPumping) return
    isPumping = true
    try {
      for (let bytes = waiting.shift(); bytes !== undefined; bytes = waiting.shift()) {
        waitingBytes -= bytes.length
        sink.write(bytes)
        await sink.flush()
      }
      if (isEnding) close()
    } catch {
      // The program has gone; its end is told where its exit is.
      close()
    } finally {
      isPumping = false
    }
  }

  function close() {
    if (isOver) return
    isOver = true
    waiting.length = 0
    Promise.resolve(endOf(sink)).catch(() => {})
  }

  return {
    write(bytes) {
      if (isEnding || isOver) return
      waitingBytes += bytes.length
      if (waitingBytes > waitingBytesMax) {
        close()
        return overfull()
      }
      waiting.push(bytes)
      void pump()
    },
    end() {
      isEnding = true
      void pump()
    },
    close,
  }
}

/** Ending a pipe whose reader has gone may throw. */
function endOf(sink: Bun.FileSink): number | Promise<number> {
  try {
    return sink.end()
  } catch {
    return 0
  }
}
