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
  #timer: Timer | null = null

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
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}

/** 16-bit little-endian PCM, which is the byte order of every supported machine. */
export function bytesOf(samples: Int16Array): Buffer {
  return Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
}

const tickMs = 50

/**
 * Estimates the progress of a server that does not report it: the audio sent, at most `paceMax`
 * times faster than real time, and none while the connection has a backlog.
 */
export class EstimatedProgress {
  readonly #session: ServerSession
  readonly #paceMax: number
  #sentMs = 0
  #processedMs = 0
  #tickedAt = 0
  #timer: Timer | null = null
  #isStopped = false

  constructor(session: ServerSession, paceMax: number) {
    this.#session = session
    this.#paceMax = paceMax
  }

  sent(totalMs: number): void {
    this.#sentMs = totalMs
    if (this.#timer !== null || this.#isStopped || this.#processedMs >= totalMs) return
    this.#tickedAt = performance.now()
    this.#timer = setInterval(() => this.#tick(), tickMs)
  }

  /** The server has confirmed the audio up to this time. */
  confirmed(untilMs: number): void {
    this.#advance(Math.min(this.#sentMs, untilMs))
  }

  stop(): void {
    this.#isStopped = true
    this.#clearTimer()
  }

  #tick(): void {
    const now = performance.now()
    const elapsedMs = now - this.#tickedAt
    this.#tickedAt = now
    if (this.#session.hasBacklog()) return
    this.#advance(Math.min(this.#sentMs, this.#processedMs + elapsedMs * this.#paceMax))
  }

  #advance(toMs: number): void {
    if (toMs <= this.#processedMs) return
    this.#processedMs = toMs
    if (toMs >= this.#sentMs) this.#clearTimer()
    this.#session.emit({ type: 'progress', processedMs: Math.round(toMs), estimated: true })
  }

  #clearTimer(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }
}
