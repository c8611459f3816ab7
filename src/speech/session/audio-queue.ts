import type { AudioFormat } from '#speech/decoders/decoder.ts'
import type { RecognitionProgress } from '#speech/recognition/recognition.ts'
import type { ClientSocket } from './outbox.ts'
import { ackIntervalMs, wholeMs } from './render-frames.ts'
import type { UnsentFrame } from './server-frames.ts'
import type { SpeechSession } from './session.ts'
import { SessionError } from './session-error.ts'

/** Undecoded audio of all sessions in this process. */
export class AudioBudget {
  queuedBytes = 0
  queuedBytesPeak = 0
  readonly #bytesMax: number

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  add(bytes: number): void {
    this.queuedBytes += bytes
    this.queuedBytesPeak = Math.max(this.queuedBytesPeak, this.queuedBytes)
  }

  /** Over budget, each session may queue only half of its own limit. */
  isExceeded(): boolean {
    return this.queuedBytes > this.#bytesMax
  }
}

type QueueMarker = { readonly type: 'finalize'; readonly id: string } | { readonly type: 'end' }
type QueueItem = { readonly type: 'audio'; readonly bytes: Uint8Array } | QueueMarker

type Block = { readonly type: 'block'; readonly bytes: Buffer; written: number; read: number }
type Entry = Block | QueueMarker

/** The most audio for one decoding step, unless it is a single packet. */
const pieceBytesMax = 4_096
const blockBytesMin = 4_096
/** Each packet is stored after its length. */
const lengthBytes = 4
/** Reading resumes at this share of the limit. */
const lowWaterShare = 1 / 4
/** New credit of this share of the window is sent immediately, less of it after the interval. */
const immediateAckShare = 1 / 4
/** How far a client may exceed its credit before it is disconnected. */
const creditToleranceBytes = 65_536

/**
 * The undecoded audio and markers of one client, in order. Owns backpressure towards the client: the
 * socket is paused while the queue is full or the client does not read its frames. A client that
 * uses credit flow control receives its send limit and is never paused if it complies. Small messages
 * are joined in blocks to limit memory; raw packets keep their boundaries.
 */
export class AudioQueue {
  /** Including audio that arrived after the end of the input. */
  receivedBytes = 0
  readonly #session: SpeechSession
  readonly #format: AudioFormat
  readonly #usesCredit: boolean
  readonly #sendsAcks: boolean
  readonly #keepsPackets: boolean
  readonly #entries: Entry[] = []
  #socket: ClientSocket | null = null
  /** Queued audio, plus the stored lengths of packets. */
  storedBytes = 0
  #takenBytes = 0
  #isHeld = false
  #isFull = false
  #pausedSince: number | null = null
  #pauses = 0
  #pausedMs = 0
  #creditBytes = 0
  #ackedAt = performance.now()
  /** Engine progress: the newest known, and the last that was acknowledged. */
  #processedMs = 0
  #ackedMs = 0

  constructor(session: SpeechSession) {
    const { format, options } = session.start.handshake
    this.#session = session
    this.#format = format
    this.#usesCredit = options.credit
    this.#sendsAcks = options.credit || options.progress
    this.#keepsPackets = format.container === 'raw'
  }

  attach(socket: ClientSocket): void {
    this.#socket = socket
    this.#applyBackpressure()
  }

  detach(): void {
    this.#socket = null
    this.#isFull = false
    this.#endPause()
  }

  /** Keeps the client paused regardless of the fill level. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    this.#applyBackpressure()
  }

  isPaused(): boolean {
    return this.#isHeld || this.#isFull
  }

  /** Queues audio. Throws `flow_violation` if the client ignores its credit. */
  push(bytes: Uint8Array): void {
    this.receivedBytes += bytes.length
    if (this.#usesCredit && this.receivedBytes > this.#creditBytes + creditToleranceBytes) {
      const message = 'The client sent more audio than its credit allows.'
      const details = { credit_bytes: this.#creditBytes, received_bytes: this.receivedBytes }
      throw new SessionError('flow_violation', message, { details })
    }
    const prefixBytes = this.#keepsPackets ? lengthBytes : 0
    const block = this.#blockFor(prefixBytes + bytes.length)
    if (this.#keepsPackets) block.bytes.writeUInt32LE(bytes.length, block.written)
    block.bytes.set(bytes, block.written + prefixBytes)
    block.written += prefixBytes + bytes.length
    this.#addStored(prefixBytes + bytes.length)
  }

  pushMarker(marker: QueueMarker): void {
    this.#entries.push(marker)
  }

  /** The next piece of audio or marker; null if there is none. */
  take(): QueueItem | null {
    this.#dropReadBlocks()
    const first = this.#entries[0]
    if (first === undefined) return null
    if (first.type === 'block') {
      return first.read < first.written ? { type: 'audio', bytes: this.#read(first) } : null
    }
    this.#entries.shift()
    return first
  }

  /** Pauses the client if the queue has become full. */
  pauseIfFull(): void {
    if (this.#isFull) return
    if (this.storedBytes <= this.#windowBytes() && !this.#session.isReaderFull()) return
    this.#isFull = true
    this.#applyBackpressure()
  }

  /** Resumes the client if the queue has drained enough. */
  resumeIfDrained(): void {
    if (!this.#isFull || this.storedBytes > this.#windowBytes() * lowWaterShare) return
    if (this.#session.isReaderFull()) return
    this.#isFull = false
    this.#applyBackpressure()
  }

  /**
   * Grants credit: what the client may have sent in total. It never decreases, so a client may miss
   * an acknowledgement.
   */
  grantCredit(): number {
    this.#creditBytes = this.#availableCredit()
    this.#ackedAt = performance.now()
    this.#ackedMs = this.#processedMs
    return this.#creditBytes
  }

  /** The next acknowledgement, if the client wants them and one is due. */
  nextAck(readProgress: () => RecognitionProgress): UnsentFrame | null {
    if (!this.#sendsAcks) return null
    const { receivedMs, processedMs, finalMs } = readProgress()
    this.#processedMs = processedMs
    if (!this.#isAckDue()) return null
    return {
      type: 'audio_ack',
      received_bytes: this.receivedBytes,
      credit_bytes: this.grantCredit(),
      received_ms: wholeMs(receivedMs),
      processed_ms: wholeMs(processedMs),
      final_ms: wholeMs(finalMs),
    }
  }

  /** The duration of the queued audio; for compressed audio estimated from what was decoded. */
  queuedMs(decodedMs: number): number {
    const msPerByte = pcmMsPerByte(this.#format)
    return this.storedBytes * (msPerByte ?? decodedMs / Math.max(1, this.#takenBytes))
  }

  /** For the statistics of the session. */
  counts() {
    const pausedNowMs = this.#pausedSince === null ? 0 : performance.now() - this.#pausedSince
    return {
      received_bytes: this.receivedBytes,
      discarded_bytes: this.receivedBytes - this.#takenBytes,
      pauses: this.#pauses,
      paused_ms: wholeMs(this.#pausedMs + pausedNowMs),
    }
  }

  /** Drops queued audio. The socket stays as it is; closing it resumes reading. */
  close(): void {
    this.#entries.length = 0
    this.#addStored(-this.storedBytes)
    this.detach()
    this.#isHeld = false
  }

  #isAckDue(): boolean {
    const newBytes = this.#availableCredit() - this.#creditBytes
    if (newBytes >= this.#windowBytes() * immediateAckShare) return true
    const hasNews = newBytes > 0 || this.#processedMs > this.#ackedMs
    return hasNews && performance.now() - this.#ackedAt >= ackIntervalMs
  }

  #availableCredit(): number {
    return Math.max(this.#creditBytes, this.#takenBytes + this.#windowBytes())
  }

  #windowBytes(): number {
    const { budget, settings } = this.#session.deps
    const { queueBytesMax } = settings
    return budget.isExceeded() ? Math.floor(queueBytesMax / 2) : queueBytesMax
  }

  #applyBackpressure(): void {
    const socket = this.#socket
    if (socket === null) return
    if (!this.#isFull) {
      this.#endPause()
    } else if (this.#pausedSince === null) {
      this.#pauses++
      this.#pausedSince = performance.now()
    }
    if (this.isPaused() === socket.isPaused) return
    if (this.isPaused()) socket.pause()
    else socket.resume()
  }

  #endPause(): void {
    if (this.#pausedSince !== null) this.#pausedMs += performance.now() - this.#pausedSince
    this.#pausedSince = null
  }

  #addStored(bytes: number): void {
    this.storedBytes += bytes
    this.#session.deps.budget.add(bytes)
  }

  #blockFor(bytes: number): Block {
    const last = this.#entries.at(-1)
    if (last?.type === 'block' && last.bytes.length - last.written >= bytes) return last
    const buffer = Buffer.allocUnsafeSlow(Math.max(blockBytesMin, bytes))
    const block: Block = { type: 'block', bytes: buffer, written: 0, read: 0 }
    this.#entries.push(block)
    return block
  }

  #read(block: Block): Uint8Array {
    const length = this.#keepsPackets
      ? block.bytes.readUInt32LE(block.read)
      : Math.min(pieceBytesMax, block.written - block.read)
    const start = block.read + (this.#keepsPackets ? lengthBytes : 0)
    const end = start + length
    this.#addStored(block.read - end)
    block.read = end
    this.#takenBytes += length
    return block.bytes.subarray(start, end)
  }

  /** The last block stays to be filled further. */
  #dropReadBlocks(): void {
    for (let first = this.#entries[0]; this.#entries.length > 1; first = this.#entries[0]) {
      if (first?.type !== 'block' || first.read < first.written) return
      this.#entries.shift()
    }
  }
}

function pcmMsPerByte({ channels, encoding, sampleRateHz }: AudioFormat): number | null {
  if (sampleRateHz === null) return null
  const sampleBytes = encoding === 'pcm_float32' ? 4 : 2
  return 1000 / (sampleRateHz * sampleBytes * channels)
}
