import type { JsonObject } from '#lib/json.ts'
import type { Language, Word } from '#speech/engine.ts'
import { bytesOf, createAudioFrames } from '#speech/engines/audio-frames.ts'
import { createPacedProgress } from '#speech/engines/paced-progress.ts'
import type { ServerLine, ServerProtocol } from '#speech/engines/server-session.ts'
import { meanConfidence, moveWords, readSeconds, readWords } from '#speech/engines/words.ts'
import type { RealtimeSettings } from './engine.ts'
import { createPauseFinder } from './pause-finder.ts'
import { appendMs, growText, readError } from './realtime-frames.ts'

/** The models of this server are prompted with locales. */
const locales: Readonly<Record<Language, string>> = {
  cs: 'cs-CZ',
  de: 'de-DE',
  el: 'el-GR',
  en: 'en-US',
  fr: 'fr-FR',
  sk: 'sk-SK',
}
/** Servers cap it at 5; what they recommend. */
const vocabularyBoost = 3
/** A server finds pauses only where it was told to at its start; so much later we do. */
const pauseGraceMs = 1_000

/**
 * NeMo-Speech's dialect: binary audio, one utterance after the other without ids, words with
 * times. A commit ends the server's stream, so that times begin anew behind it.
 */
export function createStreamProtocol(line: ServerLine, settings: RealtimeSettings): ServerProtocol {
  return new StreamProtocol(line, settings)
}

class StreamProtocol implements ServerProtocol {
  readonly #line: ServerLine
  readonly #settings: RealtimeSettings
  readonly #frames
  readonly #progress
  readonly #pauses
  #sentMs = 0
  /** Where the stream of the server began, and where the next one will. */
  #streamFromMs = 0
  #committedMs = 0
  #isCommitting = false
  /** Whether the speaker pauses where the commit is. */
  #inPause = true
  #text = ''
  /** Where the audio ends that `finalize` is about; null where it is not asked. */
  #finalizeMs: number | null = null
  #isEnding = false

  constructor(line: ServerLine, settings: RealtimeSettings) {
    const { config, sampleRateHz, options } = settings
    this.#line = line
    this.#settings = settings
    this.#pauses = createPauseFinder(sampleRateHz, options.endpointingMs + pauseGraceMs)
    this.#progress = createPacedProgress(line, config.paceMax)
    this.#frames = createAudioFrames({
      sampleRateHz,
      frameMs: appendMs,
      send: (samples) => this.#append(samples),
    })
  }

  opened(): void {
    this.#line.sendJson(sessionUpdate(this.#settings))
  }

  frame(frame: JsonObject): void {
    const reachedMs = readSeconds(frame['audio_processed'])
    const known = this.#streamFromMs + (reachedMs ?? 0)
    switch (frame['type']) {
      case 'session.updated':
        this.#line.ready()
        break
      case 'conversation.item.input_audio_transcription.delta':
        this.#grow(frame['delta'])
        break
      case 'conversation.item.input_audio_transcription.completed':
        this.#tellFinal(frame)
        break
      case 'input_audio_buffer.committed':
        this.#committed()
        break
      case 'error': {
        // It may have thrown audio away, so it is not survived.
        const { message } = readError(frame)
        this.#line.fail(kindOf(message), `the server says: ${message}`)
        break
      }
    }
    this.#progress.known(known)
  }

  write(samples: Int16Array): void {
    this.#frames.write(samples)
  }

  finalize(): void {
    this.#frames.flush()
    this.#finalizeMs = this.#sentMs
    this.#commit(false)
    this.#line.soon(() => this.#answer())
  }

  end(): void {
    this.#frames.flush()
    this.#isEnding = true
    this.#commit(true)
    this.#line.soon(() => this.#answer())
  }

  isAnswered(): boolean {
    return false
  }

  stop(): void {
    this.#frames.stop()
    this.#progress.stop()
  }

  #append(samples: Int16Array): void {
    this.#sentMs += (samples.length * 1000) / this.#settings.sampleRateHz
    this.#line.sendBytes(bytesOf(samples))
    this.#progress.sent(this.#sentMs)
    const reason = this.#pauses.push(samples)
    if (reason === null) return
    this.#pauses.cut()
    if (this.#text !== '') this.#commit(reason === 'pause')
  }

  #commit(inPause: boolean): void {
    if (this.#isCommitting || this.#sentMs === this.#committedMs) return
    this.#isCommitting = true
    this.#inPause = inPause
    this.#committedMs = this.#sentMs
    this.#line.sendJson({ type: 'input_audio_buffer.commit' })
  }

  #committed(): void {
    this.#isCommitting = false
    this.#streamFromMs = this.#committedMs
    this.#progress.known(this.#committedMs)
    this.#answer()
  }

  #grow(delta: unknown): void {
    const grown = mend(this.#text, delta)
    if (grown.trim() === '' || grown === this.#text) return
    this.#text = grown
    this.#line.emit({ type: 'partial', text: grown.trim(), startMs: null, endMs: null })
  }

  #tellFinal(frame: JsonObject): void {
    this.#text = ''
    const text = typeof frame['transcript'] === 'string' ? frame['transcript'].trim() : ''
    const read = readWords(frame['words'], 'confidence')
    const words: readonly Word[] = moveWords(read, this.#streamFromMs)
    const startMs = words[0]?.startMs ?? null
    const endMs = words.at(-1)?.endMs ?? null
    const speechFinal = !this.#isCommitting || this.#inPause
    const final = { text, startMs, endMs, words, confidence: meanConfidence(words), speechFinal }
    this.#line.emit(text === '' ? { type: 'utterance-dropped' } : { type: 'final', ...final })
  }

  /** Answers what was asked for, or takes the next step towards it. */
  #answer(): void {
    if (this.#finalizeMs !== null && this.#streamFromMs >= this.#finalizeMs) {
      this.#finalizeMs = null
      this.#line.emit({ type: 'finalized' })
    }
    if (this.#finalizeMs !== null) this.#commit(false)
    else if (this.#isEnding) this.#commit(true)
    if (this.#isEnding && !this.#isCommitting) this.#line.ended()
  }
}

function sessionUpdate({ sampleRateHz, options }: RealtimeSettings): JsonObject {
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
 * A delta continues the text; where the server has changed its mind it is the whole text anew,
 * which shows in that it begins with the same word.
 */
function mend(text: string, delta: unknown): string {
  if (typeof delta !== 'string') return text
  const firstWord = text.trimStart().split(' ', 1)[0] ?? ''
  const isAnew = firstWord !== '' && text.includes(' ') && delta.startsWith(firstWord)
  return isAnew ? growText('', delta) : growText(text, delta)
}

function kindOf(message: string) {
  if (message.includes('exceeds')) return 'limit'
  return /\bmust be\b|\bnot support/.test(message) ? 'refused' : 'broken'
}
