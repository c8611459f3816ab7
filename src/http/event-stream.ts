import { AppError, toAppError } from '#lib/errors.ts'
import { orAfter } from '#lib/time-limit.ts'

/** What is streamed, and how it looks as frames. */
export type FrameSource<T> = {
  /** It may throw before its first item; later it may only end. */
  readonly items: AsyncIterator<T>
  /** One item as whole frames; everything that one item gives goes out in one write. */
  render(item: T): string
  /** The frames that tell of a failure once the answer has begun. */
  fail(error: AppError): string
  /** What says that a silent stream is alive; null where the items themselves do. */
  readonly life: {
    /** The frames that open the stream when it must begin before the first item. */
    open(): string
    /** A frame that only says that the stream is alive. */
    heartbeat(): string
  } | null
  /** Called when the answer begins: from now on a failure is told inside the stream. */
  commit(): void
  /** Called when the reader has gone, or reads too slowly to be waited for. */
  abandon(): void
}

export type StreamPace = { heartbeatMs: number; readerStallMs: number }

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/**
 * A text/event-stream answer that is as fast as its reader. It begins with the first item, or with
 * `open` when that takes longer than one heartbeat; a failure before then is thrown, so that it
 * can still become an HTTP status. Reading the source waits for each write, so a slow reader holds
 * the source back and at most one item is in memory. `closing` follows the last frame.
 */
export async function streamEvents<T>(
  source: FrameSource<T>,
  { closing, ...pace }: StreamPace & { closing: string },
): Promise<Response> {
  const begun = await beginStream(source, pace)
  // Bun's direct streams are the cheapest writer there is; their types are not in the platform's.
  const direct: DirectSource = {
    type: 'direct',
    pull: (sink) => begun.pump({ ...sinkOf(sink), closing }),
    cancel: () => source.abandon(),
  }
  return new Response(new ReadableStream(direct), { headers })
}

/** Where frames go. `write` answers 0 when the reader has gone, a promise when it must be waited for. */
export type FrameSink = {
  write(frames: string): number | Promise<number>
  /** Everything was written. */
  end(): unknown
  /** Gives the reader up in the middle; what was not sent is thrown away. */
  close(error: Error): unknown
  /** What follows the last frame. */
  closing: string
}

/** Waits until there is something to write, or until silence has lasted for a heartbeat. */
export async function beginStream<T>(
  source: FrameSource<T>,
  pace: StreamPace,
): Promise<{ pump(sink: FrameSink): Promise<void> }> {
  const { life } = source
  const first = source.items.next()
  const arrived = first.then(() => true)
  const isEarly = life === null ? await arrived : await orAfter(arrived, pace.heartbeatMs, false)
  source.commit()
  const opening = isEarly || life === null ? '' : life.open()
  return { pump: (sink) => pump({ ...source, ...pace }, { sink, first, opening }) }
}

type DirectSource = {
  type: 'direct'
  pull(sink: Sink): Promise<void>
  cancel(): void
}

type Sink = Omit<FrameSink, 'closing'>

/** Bun's sink loses its methods when it is spread. */
function sinkOf(sink: Sink): Sink {
  return {
    write: (frames) => sink.write(frames),
    end: () => sink.end(),
    close: (error) => sink.close(error),
  }
}

type Options<T> = FrameSource<T> & StreamPace

async function pump<T>(
  options: Options<T>,
  stream: { sink: FrameSink; first: Promise<IteratorResult<T>>; opening: string },
): Promise<void> {
  const { items } = options
  const { closing } = stream.sink
  const writer = createWriter(options, stream.sink)
  try {
    if (stream.opening !== '') await writer.write(stream.opening)
    let next = await stream.first
    while (!next.done && writer.isOpen()) {
      const written = writer.write(options.render(next.value))
      if (written !== undefined) await written
      next = await items.next()
    }
    if (closing !== '') await writer.write(closing)
  } catch (error) {
    if (writer.isOpen()) await writer.write(options.fail(toAppError(error)) + closing)
  } finally {
    writer.close()
    void Promise.resolve(items.return?.()).catch(() => {})
  }
}

/** Writes frames, sends a heartbeat when nothing was written for a while, notes a reader's end. */
function createWriter<T>(options: Options<T>, sink: FrameSink) {
  let open = true
  let waiting = false
  let stalled = false
  let wroteAt = performance.now()
  const { life } = options
  let timer = life === null ? undefined : setTimeout(beat, options.heartbeatMs)

  function beat() {
    const restMs = wroteAt + options.heartbeatMs - performance.now()
    if (restMs <= 0 && !waiting && life !== null) void write(life.heartbeat())
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
