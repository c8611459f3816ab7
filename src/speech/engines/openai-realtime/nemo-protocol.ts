import type { JsonObject } from '#lib/json.ts'
import type { Language } from '#speech/engine.ts'
import type { ServerProtocol, ServerSession } from '#speech/engines/server-session.ts'
import {
  finalEvent,
  meanConfidence,
  readSeconds,
  readText,
  readWords,
  shiftWords,
} from '#speech/engines/words.ts'
import { appendDelta, PauseFinder, readError } from './realtime-audio.ts'

/** The models of this server expect locales. */
const locales: Readonly<Record<Language, string>> = {
  cs: 'cs-CZ',
  de: 'de-DE',
  el: 'el-GR',
  en: 'en-US',
  fr: 'fr-FR',
  sk: 'sk-SK',
}
/** As recommended; servers limit it to 5. */
const vocabularyBoost = 3
/** A server detects pauses only if configured at its start; this much later we do. */
const pauseGraceMs = 1_000

/**
 * NeMo-Speech's dialect: binary audio, consecutive utterances without ids, words with times. A
 * commit ends the server's stream, so times restart after it.
 */
export class NemoProtocol implements ServerProtocol {
  readonly #session: ServerSession
  readonly #pauses: PauseFinder
  /** Where the server's stream started, and where the next one will. */
  #streamFromMs = 0
  #committedMs = 0
  #isCommitting = false
  /** Whether the speaker paused at the commit. */
  #isInPause = true
  #text = ''
  /** The end of the audio that `finalize` covers; null: not requested. */
  #finalizeMs: number | null = null
  #isEnding = false

  constructor(session: ServerSession) {
    this.#session = session
    const pauseMs = session.options.endpointingMs + pauseGraceMs
    this.#pauses = new PauseFinder(session.sampleRateHz, pauseMs)
  }

  opened(): void {
    this.#session.sendJson(sessionUpdate(this.#session))
  }

  received(frame: JsonObject): void {
    const confirmedMs = this.#streamFromMs + (readSeconds(frame['audio_processed']) ?? 0)
    switch (frame['type']) {
      case 'session.updated':
        this.#session.ready()
        break
      case 'conversation.item.input_audio_transcription.delta':
        this.#onDelta(frame['delta'])
        break
      case 'conversation.item.input_audio_transcription.completed':
        this.#onCompleted(frame)
        break
      case 'input_audio_buffer.committed':
        this.#onCommitted()
        break
      case 'error': {
        // The server may have discarded audio, so every error is fatal.
        const { message } = readError(frame)
        this.#session.fail(kindOf(message), `server error: ${message}`)
        break
      }
    }
    this.#session.processed(confirmedMs)
  }

  send(samples: Int16Array): void {
    this.#session.sendAudio(samples)
    const reason = this.#pauses.push(samples)
    if (reason === null) return
    this.#pauses.cut()
    if (this.#text !== '') this.#commit(reason === 'pause')
  }

  finalize(): void {
    this.#finalizeMs = this.#session.sentMs
    this.#commit(false)
    this.#session.defer(() => this.#respond())
  }

  end(): void {
    this.#isEnding = true
    this.#commit(true)
    this.#session.defer(() => this.#respond())
  }

  #commit(isInPause: boolean): void {
    const { sentMs } = this.#session
    if (this.#isCommitting || sentMs === this.#committedMs) return
    this.#isCommitting = true
    this.#isInPause = isInPause
    this.#committedMs = sentMs
    this.#session.sendJson({ type: 'input_audio_buffer.commit' })
  }

  #onCommitted(): void {
    this.#isCommitting = false
    this.#streamFromMs = this.#committedMs
    this.#session.processed(this.#committedMs)
    this.#respond()
  }

  #onDelta(delta: unknown): void {
    const text = applyDelta(this.#text, delta)
    if (text.trim() === '' || text === this.#text) return
    this.#text = text
    this.#session.emit({ type: 'partial', text: text.trim(), startMs: null, endMs: null })
  }

  #onCompleted(frame: JsonObject): void {
    this.#text = ''
    const words = shiftWords(readWords(frame['words'], 'confidence'), this.#streamFromMs)
    this.#session.emit(
      finalEvent({
        text: readText(frame['transcript']),
        words,
        confidence: meanConfidence(words),
        speechFinal: !this.#isCommitting || this.#isInPause,
      }),
    )
  }

  /** Answers outstanding requests, or takes the next step towards it. */
  #respond(): void {
    if (this.#finalizeMs !== null && this.#streamFromMs >= this.#finalizeMs) {
      this.#finalizeMs = null
      this.#session.emit({ type: 'finalized' })
    }
    if (this.#finalizeMs !== null) this.#commit(false)
    else if (this.#isEnding) this.#commit(true)
    if (this.#isEnding && !this.#isCommitting) this.#session.ended()
  }
}

function sessionUpdate({ sampleRateHz, options }: ServerSession): JsonObject {
  const { language, endpointingMs, vocabulary } = options
  const contexts = [{ phrases: vocabulary, boost: vocabularyBoost }]
  return {
    type: 'session.update',
    session: {
      sample_rate: sampleRateHz,
      language: locales[language],
      automatic_punctuation: true,
      word_timestamps: true,
      endpointing_ms: endpointingMs,
      ...(vocabulary.length === 0 ? {} : { speech_contexts: contexts }),
    },
  }
}

/**
 * A delta continues the text. If the server revises it, the delta is the whole text, which is
 * recognised by its first word.
 */
function applyDelta(text: string, delta: unknown): string {
  if (typeof delta !== 'string') return text
  const firstWord = text.trimStart().split(' ', 1)[0] ?? ''
  const isRevision = firstWord !== '' && text.includes(' ') && delta.startsWith(firstWord)
  return appendDelta(isRevision ? '' : text, delta)
}

function kindOf(message: string) {
  if (message.includes('exceeds')) return 'limit'
  return /\bmust be\b|\bnot support/.test(message) ? 'refused' : 'broken'
}
