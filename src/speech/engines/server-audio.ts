import type { ServerSession } from './server-session.ts'

/** An incomplete frame is sent after this many frame lengths. */
const flushFrames = 3

/** Cuts written samples into frames of one length. */
export class AudioFramer {
  readonly #frame: Int16Array
  readonly #frameMs: number
  /** The samples are only valid during the call. */
  readonly #send: (samples: Int16Array) => void
  #filled = 0
  #isStopped = false
  #timer: Timer | undefined

  constructor(sampleRateHz: number, frameMs: number, send: (samples: Int16Array) => void) {
    this.#frame = new Int16Array(Math.round((sampleRateHz * frameMs) / 1000))
    this.#frameMs = frameMs
    this.#send = send
  }

  write(samples: Int16Array): void {
    const { length } = this.#frame
    for (let at = 0; at < samples.length && !this.#isStopped; ) {
      const fits = at === 0 && samples.length <= length - this.#filled
      const piece = fits ? samples : samples.subarray(at, at + length - this.#filled)
      this.#frame.set(piece, this.#filled)
      this.#filled += piece.length
      at += piece.length
      if (this.#filled === length) this.flush()
    }
    if (this.#filled === 0 || this.#isStopped) return
    this.#timer ??= setTimeout(() => this.flush(), this.#frameMs * flushFrames)
  }

  /** Sends an incomplete frame. */
  flush(): void {
    this.#clearTimer()
    if (this.#filled === 0) return
    const isFull = this.#filled === this.#frame.length
    const samples = isFull ? this.#frame : this.#frame.subarray(0, this.#filled)
    this.#filled = 0
    this.#send(samples)
  }

  stop(): void {
    this.#isStopped = true
    this.#filled = 0
    this.#clearTimer()
  }

  #clearTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** 16-bit little-endian PCM, which is the byte order of every supported machine. */
export function bytesOf(samples: Int16Array): Buffer {
  return Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
}

const tickMs = 50

/**
 * The progress of a server. If it does not report its own (`paceMax` is not null), progress is
 * estimated: the audio sent, at most `paceMax` times faster than real time, and none while the
 * connection has a backlog.
 */
export class ServerProgress {
  readonly #session: ServerSession
  readonly #paceMax: number | null
  #processedMs = 0
  #tickedAt = 0
  #timer: Timer | undefined
  #isStopped = false

  constructor(session: ServerSession, paceMax: number | null) {
    this.#session = session
    this.#paceMax = paceMax
  }

  /** Audio was sent. */
  sent(): void {
    const { sentMs } = this.#session
    if (this.#paceMax === null || this.#timer !== undefined) return
    if (this.#isStopped || this.#processedMs >= sentMs) return
    const paceMax = this.#paceMax
    this.#tickedAt = performance.now()
    this.#timer = setInterval(() => this.#tick(paceMax), tickMs)
  }

  /** The server has processed the audio before this time. */
  processed(untilMs: number): void {
    const { sentMs } = this.#session
    const processedMs = Math.min(sentMs, untilMs)
    if (processedMs <= this.#processedMs) return
    this.#processedMs = processedMs
    if (processedMs >= sentMs) this.#clearTimer()
    const estimated = this.#paceMax !== null
    this.#session.emit({ type: 'progress', processedMs: Math.round(processedMs), estimated })
  }

  stop(): void {
    this.#isStopped = true
    this.#clearTimer()
  }

  #tick(paceMax: number): void {
    const now = performance.now()
    const elapsedMs = now - this.#tickedAt
    this.#tickedAt = now
    if (!this.#session.hasBacklog()) this.processed(this.#processedMs + elapsedMs * paceMax)
  }

  #clearTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
