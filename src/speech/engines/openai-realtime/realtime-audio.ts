import { isRecord, type JsonObject } from '#lib/json.ts'
import type { EngineErrorKind } from '#speech/engine.ts'
import { bytesOf } from '#speech/engines/server-audio.ts'
import { VoiceActivity } from '#speech/voice-activity.ts'

/** What the protocols of this family share: pauses, growing texts and errors. */

/** Servers refuse to commit less audio. */
export const commitMsMin = 100

/** Base64 needs no escapes, so the frame is concatenated instead of encoded as JSON. */
export function appendFrame(samples: Int16Array): string {
  return `{"type":"input_audio_buffer.append","audio":"${bytesOf(samples).toString('base64')}"}`
}

/** Longer utterances slow these models down and degrade their results. */
const utteranceMsMax = 30_000
/** How much longer an utterance may be while speech continues. */
const graceMs = 10_000

type Stretch = { readonly startMs: number; readonly endMs: number }

/** Finds where to cut audio into utterances, for servers that do not detect pauses. */
export class PauseFinder {
  readonly #voice: VoiceActivity
  readonly #sampleRateHz: number
  readonly #pauseMs: number
  #seenMs = 0
  #cutMs = 0
  #startMs: number | null = null
  #endMs = 0

  constructor(sampleRateHz: number, pauseMs: number) {
    this.#voice = new VoiceActivity(sampleRateHz)
    this.#sampleRateHz = sampleRateHz
    this.#pauseMs = pauseMs
  }

  /** Returns whether to cut after these samples: in a pause, or because of the length. */
  push(samples: Int16Array): 'pause' | 'length' | null {
    this.#seenMs += (samples.length * 1000) / this.#sampleRateHz
    for (const change of this.#voice.push(samples)) {
      if (change.speaking) this.#startMs ??= change.atMs
      else this.#endMs = change.endMs
    }
    const current = this.#voice.current()
    if (current !== null) this.#endMs = current.endMs
    const pausedMs = this.#seenMs - this.#endMs
    if (this.#startMs !== null && current === null && pausedMs >= this.#pauseMs) return 'pause'
    const lengthMsMax = current === null ? utteranceMsMax : utteranceMsMax + graceMs
    return this.#seenMs - this.#cutMs >= lengthMsMax ? 'length' : null
  }

  /** The speech since the last cut; null without any. */
  speech(): Stretch | null {
    const startMs = this.#startMs
    return startMs === null ? null : { startMs, endMs: Math.max(startMs, this.#endMs) }
  }

  /** Returns the speech since the last cut and starts anew. */
  cut(): Stretch | null {
    const speech = this.speech()
    this.#cutMs = this.#seenMs
    this.#startMs = null
    // Speech after the cut is a new stretch.
    this.#voice.cut()
    return speech
  }
}

/** A growing text is truncated here; its final is complete. */
const partialCharsMax = 20_000

export function appendDelta(text: string, delta: unknown): string {
  return typeof delta === 'string' ? (text + delta).slice(0, partialCharsMax) : text
}

export type RealtimeError = ReturnType<typeof readError>

/** Most servers send an object, some a text with a code beside it. */
export function readError(frame: JsonObject) {
  const error = isRecord(frame['error']) ? frame['error'] : frame
  const { error: text, message = text, code, type, param } = error
  return {
    code: String(code ?? (type === 'error' ? '' : (type ?? ''))),
    message: String(message ?? 'an error without a message'),
    param: String(param ?? ''),
  }
}

/** Errors that end a session; it continues after all others. */
export const fatalCodes: Readonly<Record<string, EngineErrorKind>> = {
  session_expired: 'limit',
  rate_limit_exceeded: 'busy',
  rate_limit_error: 'busy',
  insufficient_quota: 'refused',
  invalid_api_key: 'refused',
  authentication_error: 'refused',
  permission_denied: 'refused',
  model_not_found: 'refused',
  model_load_error: 'refused',
}
