import type { Config } from '#config/schema.ts'
import { assert } from '#lib/assert.ts'
import { msToSamples, samplesToMs } from '#speech/engine.ts'
import type { EngineConnection } from './engine-connection.ts'
import { ReplayBuffer } from './replay-buffer.ts'

/** `id`: null if not the client requested it. */
type FinalizeRequest = { readonly id: string | null; readonly position: number }

type Handover = {
  /** Whether finals of the audio sent so far are needed before the engine receives more. */
  needsFinals(connection: EngineConnection): boolean
  /** Ends a connection near its limit; returns whether it must not receive more audio. */
  leavesNearLimit(connection: EngineConnection): boolean
  /** Ends a connection that returns finals only at its end. */
  endForFinals(): void
}

/** The longest piece sent at once, and the shortest worth sending. */
const pieceMsMax = 200
const pieceMsMin = 100
/** Further requests are ignored until the engine responds. */
const finalizesMax = 1_000

/**
 * Sends the audio of a session to its current engine: never more than the engine can process soon,
 * and never past a position for which finals are requested, until the engine has answered. Owns the
 * replay buffer and the outstanding finalize requests, which outlive engines. Positions are samples
 * of the session.
 */
export class AudioSender {
  readonly sampleRateHz: number
  readonly buffer: ReplayBuffer
  /** The position that the current engine has received. */
  sentUntil = 0
  /** Audio that an engine may have received but not processed. */
  readonly #inFlightMsMax: number
  readonly #samplesMax: number
  readonly #handover: Handover
  #connection: EngineConnection | null = null
  #hasEnd = false
  #isSending = false
  #isSendRequested = false
  #finalizes: readonly FinalizeRequest[] = []
  /** The position of the finalize request that the engine is processing. */
  #finalizingAt: number | null = null

  constructor(
    sampleRateHz: number,
    { inFlightMsMax, replayMsMax }: Config['speech'],
    handover: Handover,
  ) {
    this.sampleRateHz = sampleRateHz
    this.#inFlightMsMax = inFlightMsMax
    this.#handover = handover
    // Audio waiting for the engine comes on top of the audio kept for replay; a piece exceeds each.
    this.#samplesMax = this.toSamples(replayMsMax + inFlightMsMax + 2 * pieceMsMax)
    this.buffer = new ReplayBuffer(this.#samplesMax)
  }

  toMs(samples: number): number {
    return samplesToMs(samples, this.sampleRateHz)
  }

  toSamples(ms: number): number {
    return msToSamples(ms, this.sampleRateHz)
  }

  /** Sends to this engine from now on, starting at the position. */
  attach(connection: EngineConnection, position: number): void {
    this.#connection = connection
    this.sentUntil = position
  }

  /** Stops sending; unanswered finalize requests wait for the next engine. */
  detach(): void {
    this.#connection = null
    this.#finalizingAt = null
  }

  /** What the current engine has received. */
  sentMs(): number {
    return this.toMs(this.sentUntil)
  }

  /** How much of that could be sent again. */
  replayableMs(): number {
    return this.toMs(this.sentUntil - this.buffer.start)
  }

  /** Whether the input has ended and all of it was sent. */
  isComplete(): boolean {
    return this.#hasEnd && this.sentUntil === this.buffer.end
  }

  writableMs(): number {
    if (this.#connection === null || this.#hasEnd) return 0
    const outstandingMs = this.toMs(this.buffer.end) - this.#connection.processedMs
    return Math.max(0, this.#inFlightMsMax - outstandingMs)
  }

  append(samples: Int16Array): void {
    const waiting = this.buffer.end - this.sentUntil + samples.length
    assert(waiting <= this.#samplesMax, 'no more is written than is writable')
    this.buffer.append(samples)
  }

  setEnd(): void {
    this.#hasEnd = true
  }

  /** Drops audio before this time once the engine has received it. */
  dropBefore(atMs: number): void {
    this.buffer.dropBefore(Math.min(this.sentUntil, this.toSamples(atMs)))
  }

  requestFinals(id: string): void {
    if (this.#finalizes.length >= finalizesMax) return
    this.#finalizes = [...this.#finalizes, { id, position: this.buffer.end }]
  }

  /** The id of the client's finalize request that the engine is processing. */
  finalizingId(): string | null {
    return this.#finalizingAt === null ? null : (this.#finalizes[0]?.id ?? null)
  }

  /** The engine answered its finalize request; returns the position of that request. */
  finalizeAnswered(): number {
    const position = this.#finalizingAt ?? 0
    this.#finalizingAt = null
    return position
  }

  /** Removes and returns the finalize requests up to this position. */
  takeFinalizes(untilPosition: number): readonly FinalizeRequest[] {
    const taken = this.#finalizes.filter(({ position }) => position <= untilPosition)
    this.#finalizes = this.#finalizes.slice(taken.length)
    return taken
  }

  /** Sends what the engine can accept; returns whether everything was sent and the input ended. */
  send(): boolean {
    // Engines may respond inside the call that writes to them.
    this.#isSendRequested = true
    if (this.#isSending) return false
    this.#isSending = true
    try {
      while (this.#isSendRequested) {
        this.#isSendRequested = false
        while (this.#connection !== null && this.#sendNext(this.#connection));
      }
    } finally {
      this.#isSending = false
    }
    return this.#connection !== null && this.isComplete()
  }

  /** Returns whether there may be more to send. */
  #sendNext(connection: EngineConnection): boolean {
    // An engine that received the next utterance before its answer could join the two.
    if (this.#finalizingAt !== null) return false
    const finalizeAt = this.#finalizes[0]?.position ?? null
    if (finalizeAt !== null && finalizeAt <= this.sentUntil) {
      this.#finalizingAt = this.sentUntil
      if (connection.finalizesByEnding()) {
        this.#handover.endForFinals()
        return false
      }
      connection.finalize()
      return true
    }
    const waiting = this.buffer.end - this.sentUntil
    if (waiting === 0 || this.#handover.leavesNearLimit(connection)) return false
    if (this.#handover.needsFinals(connection)) {
      this.#finalizes = [{ id: null, position: this.sentUntil }, ...this.#finalizes]
      return true
    }
    const count = Math.min(
      this.#acceptableSamples(connection, waiting),
      (finalizeAt ?? this.buffer.end) - this.sentUntil,
    )
    if (count === 0) return false
    const samples = this.buffer.read(this.sentUntil, count)
    this.sentUntil += count
    connection.write(samples)
    return true
  }

  /** How many of the waiting samples the engine can accept now. */
  #acceptableSamples(connection: EngineConnection, waiting: number): number {
    const inFlightMsMax = this.#inFlightMsMax
    const remainingMs = connection.engine.limits.sessionMsMax - connection.writtenMs()
    const acceptableMs = Math.min(inFlightMsMax - connection.inFlightMs(), remainingMs)
    const worthMs = Math.min(pieceMsMin, inFlightMsMax / 2, remainingMs, this.toMs(waiting))
    if (acceptableMs <= 0 || acceptableMs < worthMs) return 0
    return Math.min(waiting, this.toSamples(Math.min(acceptableMs, pieceMsMax)))
  }
}
