import type { JsonObject } from '#lib/json.ts'
import type { EngineErrorKind } from '#speech/engine.ts'
import type { ServerProtocol, ServerSession } from '#speech/engines/server-session.ts'
import { finalEvent } from '#speech/engines/words.ts'
import { appendDelta, appendFrame, commitMsMin, PauseFinder, readError } from './realtime-audio.ts'

/** The caller stops earlier, because held audio does not count as processed. */
const heldMsMax = 60_000

const startCommit = { type: 'input_audio_buffer.commit' }
const finalCommit = { type: 'input_audio_buffer.commit', final: true }

/**
 * vLLM's dialect: one text per generation, without times or pause detection. Utterances are cut
 * here, one generation each: a commit starts it, a final commit ends its audio, `done` returns its
 * text. The server discards audio between the last two, so audio is held until `done`.
 */
export class VllmProtocol implements ServerProtocol {
  readonly #session: ServerSession
  readonly #pauses: PauseFinder
  /** `closing`: the final commit was sent and `done` is outstanding. */
  #generation: 'none' | 'receiving' | 'closing' = 'none'
  /** Audio and requests for after the generation, in order. */
  #held: (Int16Array | 'finalize' | 'end')[] = []
  #heldMs = 0
  #generationFromMs = 0
  #text = ''
  #span: { startMs: number; endMs: number } | null = null
  #speechFinal = true

  constructor(session: ServerSession) {
    this.#session = session
    this.#pauses = new PauseFinder(session.sampleRateHz, session.options.endpointingMs)
  }

  opened(): void {}

  received(frame: JsonObject): void {
    const session = this.#session
    switch (frame['type']) {
      case 'session.created':
        session.sendJson({ type: 'session.update', model: session.config.model ?? null })
        session.ready()
        break
      case 'transcription.delta':
        this.#onDelta(frame['delta'])
        break
      case 'transcription.done':
        this.#onDone(frame['text'])
        break
      case 'error': {
        // The generation may have stopped, and its text would never arrive.
        const { code, message } = readError(frame)
        session.fail(kindOf(code, message), `server error: ${code} ${message}`)
        break
      }
    }
  }

  send(samples: Int16Array): void {
    if (this.#generation === 'closing') this.#hold(samples)
    else this.#append(samples)
  }

  finalize(): void {
    this.#request('finalize')
  }

  end(): void {
    this.#request('end')
  }

  stop(): void {
    this.#held = []
  }

  #hold(samples: Int16Array): void {
    this.#held.push(samples.slice())
    this.#heldMs += this.#msOf(samples)
    if (this.#heldMs <= heldMsMax) return
    this.#session.fail('broken', 'the server returns no text for an utterance')
  }

  #append(samples: Int16Array): void {
    if (this.#generation === 'none') {
      this.#generation = 'receiving'
      this.#generationFromMs = this.#session.sentMs
      this.#session.sendJson(startCommit)
    }
    this.#session.sendAudio(samples, appendFrame(samples))
    const reason = this.#pauses.push(samples)
    if (reason !== null) this.#closeGeneration(reason === 'pause')
  }

  #closeGeneration(speechFinal: boolean): void {
    const missingMs = commitMsMin - (this.#session.sentMs - this.#generationFromMs)
    if (missingMs > 0) {
      const padding = Math.ceil((missingMs * this.#session.sampleRateHz) / 1000)
      this.#session.send(appendFrame(new Int16Array(padding)))
    }
    this.#generation = 'closing'
    this.#span = this.#pauses.cut()
    this.#speechFinal = speechFinal
    this.#session.sendJson(finalCommit)
  }

  #onDelta(delta: unknown): void {
    if (this.#generation === 'none') return
    const before = this.#text.trim()
    this.#text = appendDelta(this.#text, delta)
    const text = this.#text.trim()
    if (text === before) return
    const { startMs = null } = this.#span ?? this.#pauses.speech() ?? {}
    this.#session.emit({ type: 'partial', text, startMs, endMs: null })
  }

  #onDone(fullText: unknown): void {
    if (this.#generation === 'closing') {
      const text = typeof fullText === 'string' ? fullText.trim() : this.#text.trim()
      const speechFinal = this.#speechFinal
      const final = { text, words: [], confidence: null, speechFinal, ...this.#span }
      this.#span = null
      this.#text = ''
      this.#session.emit(finalEvent(final))
      this.#generation = 'none'
      this.#session.processed(this.#session.sentMs)
      this.#releaseHeld()
    } else {
      // The server discards audio sent in the meantime; a new session can receive it again.
      this.#session.fail('limit', 'the server ended an utterance by itself')
    }
  }

  #request(request: 'finalize' | 'end'): void {
    if (this.#generation === 'none') {
      this.#session.defer(() => this.#respond(request))
    } else {
      if (this.#generation === 'receiving') this.#closeGeneration(request === 'end')
      this.#held.push(request)
    }
  }

  #releaseHeld(): void {
    while (this.#generation !== 'closing') {
      const next = this.#held.shift()
      if (next === undefined) return
      if (typeof next !== 'string') {
        this.#heldMs -= this.#msOf(next)
        this.#append(next)
      } else if (this.#generation === 'receiving') {
        this.#closeGeneration(next === 'end')
        this.#held.unshift(next)
      } else {
        this.#respond(next)
      }
    }
  }

  #respond(request: 'finalize' | 'end'): void {
    if (request === 'end') this.#session.ended()
    else this.#session.emit({ type: 'finalized' })
  }

  #msOf(samples: Int16Array): number {
    return (samples.length * 1000) / this.#session.sampleRateHz
  }
}

function kindOf(code: string, message: string): EngineErrorKind {
  const isRefusal = code === 'model_not_validated' || /\bmodel\b.*does not exist/.test(message)
  return isRefusal ? 'refused' : 'broken'
}
