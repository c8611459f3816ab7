import { AppError, toAppError } from '#lib/errors.ts'
import { orAfter } from '#lib/time-limit.ts'

export type EventStreamOptions<T> = {
  /** What is streamed. It may throw before its first item; later it may only end. */
  items: AsyncIterator<T>
  /** One item as whole frames; everything that one item gives goes out in one write. */
  render: (item: T) => string
  /** The frames that tell of a failure once the answer has begun. */
  fail: (error: AppError) => string
  /** The frames that open the stream when it must begin before the first item. */
  open: () => string
  /** A frame that only says that the stream is alive. */
  heartbeat: () => string
  /** Called when the answer begins: from now on a failure is told inside the stream. */
  commit: () => void
  /** Called when the reader has gone, or reads too slowly to be waited for. */
  abandon: () => void
  heartbeatMs: number
  readerStallMs: number
}

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/**
 * A text/event-stream answer that is as fast as its reader. It begins with the first item, or with
 * `open` when that takes longer than one heartbeat; a failure before then is thrown, so that it
 * can still become an HTTP status. Reading the source waits for each write, so a slow reader holds
 * the source back and at most one item is in memory.
 */
export async function streamEvents<T>(options: EventStreamOptions<T>): Promise<Response> {
  const first = options.items.next()
  const isEarly = await orAfter(
    first.then(() => true),
    options.heartbeatMs,
    false,
  )
  options.commit()
  // Bun's direct streams are the cheapest writer there is; their types are not in the platform's.
  const source: DirectSource = {
    type: 'direct',
    pull: (sink) => pump(options, { sink, first, opening: isEarly ? '' : options.open() }),
    cancel: options.abandon,
  }
  return new Response(new ReadableStream(source), { headers })
}

type DirectSource = {
  type: 'direct'
  pull(sink: Sink): Promise<void>
  cancel(): void
}

/** `write` answers 0 when the reader has gone, and a promise when it must be waited for. */
type Sink = {
  write(chunk: string): number | Promise<number>
  /** The body is complete. */
  end(): unknown
  /** Closes the connection in the middle of the body; what is not sent is thrown away. */
  close(error: Error): unknown
}

async function pump<T>(
  options: EventStreamOptions<T>,
  stream: { sink: Sink; first: Promise<IteratorResult<T>>; opening: string },
): Promise<void> {
  const { items } = options
  const writer = createWriter(options, stream.sink)
  try {
    if (stream.opening !== '') await writer.write(stream.opening)
    let next = await stream.first
    while (!next.done && writer.isOpen()) {
      const written = writer.write(options.render(next.value))
      if (written !== undefined) await written
      next = await items.next()
    }
  } catch (error) {
    if (writer.isOpen()) await writer.write(options.fail(toAppError(error)))
  } finally {
    writer.close()
    void Promise.resolve(items.return?.()).catch(() => {})
  }
}

/** Writes frames, sends a heartbeat when nothing was written for a while, notes a reader's end. */
function createWriter<T>(options: EventStreamOptions<T>, sink: Sink) {
  let open = true
  let waiting = false
  let stalled = false
  let wroteAt = performance.now()
  let timer = setTimeout(beat, options.heartbeatMs)

  function beat() {
    const restMs = wroteAt + options.heartbeatMs - performance.now()
    if (restMs <= 0 && !waiting) void write(options.heartbeat())
    timer = setTimeout(beat, restMs > 0 ? restMs : options.heartbeatMs)
  }

  function write(frames: string): Promise<void> | undefined {
    if (!open || frames === '') return undefined
    wroteAt = performance.now()
    const written = sink.write(frames)
    if (typeof written === 'number') {
      if (written === 0) leave()
      return undefined
    }
    return waitForReader(written)
  }

  async function waitForReader(written: Promise<number>): Promise<void> {
    waiting = true
    const tooLong = setTimeout(() => {
      stalled = true
      leave()
    }, options.readerStallMs)
    try {
      if ((await Promise.race([written, gone])) === 0) leave()
    } catch {
      leave()
    } finally {
      clearTimeout(tooLong)
      waiting = false
    }
  }

  let giveUp: (written: number) => void = () => {}
  const gone = new Promise<number>((resolve) => {
    giveUp = resolve
  })

  function leave() {
    if (!open) return
    open = false
    giveUp(0)
    options.abandon()
  }

  return {
    write,
    isOpen: () => open,
    close() {
      clearTimeout(timer)
      open = false
      // Ending would keep the connection, and what waits in it, until the reader reads again.
      if (stalled) sink.close(new AppError('client_closed', 'The reader does not read.'))
      else sink.end()
    },
  }
}
