import type { EngineErrorKind } from '#speech/engine.ts'
import { createAudioFrames } from '#speech/engines/audio-frames.ts'
import { createPacedProgress } from '#speech/engines/paced-progress.ts'
import type { ServerLine, ServerProtocol } from '#speech/engines/server-session.ts'
import type { RealtimeSettings } from './engine.ts'
import { createPauseFinder } from './pause-finder.ts'
import { appendFrame, appendMs, commitMsMin, growText, readError } from './realtime-frames.ts'

/**
 * vLLM's dialect: one text a generation, no times, no pauses. So utterances are cut here, each is
 * one generation: a commit starts it, a final commit ends its audio, `done` gives its text. What
 * the server is sent between the last two it throws away, so audio waits for `done`.
 */
export function createCutProtocol(line: ServerLine, settings: RealtimeSettings): ServerProtocol {
  return new CutProtocol(line, settings)
}

/** The caller stops earlier, as nothing of it counts as progress. */
const heldMsMax = 60_000

const startCommit = { type: 'input_audio_buffer.commit' }
const finalCommit = { type: 'input_audio_buffer.commit', final: true }

class CutProtocol implements ServerProtocol {
  readonly #line: ServerLine
  readonly #settings: RealtimeSettings
  readonly #frames
  readonly #progress
  readonly #pauses
  /** Whether the server generates: not yet, with audio to come, or on its way to `done`. */
  #generation: 'none' | 'fed' | 'closing' = 'none'
  /** What comes after it, in order: audio, and what was asked for. */
  #held: (Int16Array | 'finalize' | 'end')[] = []
  #heldMs = 0
  #sentMs = 0
  #generationFromMs = 0
  #text = ''
  #span: { startMs: number; endMs: number } | null = null
  #speechFinal = true

  constructor(line: ServerLine, settings: RealtimeSettings) {
    const { config, sampleRateHz, options } = settings
    this.#line = line
    this.#settings = settings
    this.#pauses = createPauseFinder(sampleRateHz, options.endpointingMs)
    this.#progress = createPacedProgress(line, config.paceMax)
    this.#frames = createAudioFrames({
      sampleRateHz,
      frameMs: appendMs,
      send: (samples) => this.#take(samples),
    })
  }

  opened(): void {}

  frame(frame: { readonly [field: string]: unknown }): void {
    switch (frame['type']) {
      case 'session.created':
        this.#line.sendJson({ type: 'session.update', model: this.#settings.config.model ?? null })
        this.#line.ready()
        break
      case 'transcription.delta':
        this.#grow(frame['delta'])
        break
      case 'transcription.done':
        this.#done(frame['text'])
        break
      case 'error': {
        // Whatever it is, the generation may have stopped, and its text would never come.
        const { code, message } = readError(frame)
        this.#line.fail(kindOf(code, message), `the server says: ${code} ${message}`)
        break
      }
    }
  }

  write(samples: Int16Array): void {
    this.#frames.write(samples)
  }

  finalize(): void {
    this.#ask('finalize')
  }

  end(): void {
    this.#ask('end')
  }

  isAnswered(): boolean {
    return false
  }

  stop(): void {
    this.#frames.stop()
    this.#progress.stop()
    this.#held = []
  }

  #take(samples: Int16Array): void {
    if (this.#generation === 'closing') this.#hold(samples)
    else this.#append(samples)
  }

  #hold(samples: Int16Array): void {
    this.#held.push(samples.slice())
    this.#heldMs += this.#msOf(samples)
    if (this.#heldMs > heldMsMax) this.#line.fail('broken', 'it gives no text to what it heard')
  }

  #append(samples: Int16Array): void {
    if (this.#generation === 'none') {
      this.#generation = 'fed'
      this.#generationFromMs = this.#sentMs
      this.#line.sendJson(startCommit)
    }
    this.#line.sendText(appendFrame(samples))
    this.#sentMs += this.#msOf(samples)
    this.#progress.sent(this.#sentMs)
    const reason = this.#pauses.push(samples)
    if (reason !== null) this.#finishGeneration(reason === 'pause')
  }

  #finishGeneration(speechFinal: boolean): void {
    const missingMs = commitMsMin - (this.#sentMs - this.#generationFromMs)
    if (missingMs > 0) {
      const padding = Math.ceil((missingMs * this.#settings.sampleRateHz) / 1000)
      this.#line.sendText(appendFrame(new Int16Array(padding)))
    }
    this.#generation = 'closing'
    this.#span = this.#pauses.cut()
    this.#speechFinal = speechFinal
    this.#line.sendJson(finalCommit)
  }

  #grow(delta: unknown): void {
    if (this.#generation === 'none') return
    const before = this.#text.trim()
    this.#text = growText(this.#text, delta)
    const text = this.#text.trim()
    if (text === before) return
    const { startMs = null } = this.#span ?? this.#pauses.speech() ?? {}
    this.#line.emit({ type: 'partial', text, startMs, endMs: null })
  }

  #done(whole: unknown): void {
    if (this.#generation === 'closing') {
      this.#tellFinal((typeof whole === 'string' ? whole : this.#text).trim())
      this.#generation = 'none'
      this.#progress.known(this.#sentMs)
      this.#release()
    } else {
      // It throws away what it was sent meanwhile; a fresh session can be given it again.
      this.#line.fail('limit', 'the server ended an utterance by itself')
    }
  }

  #tellFinal(text: string): void {
    const { startMs = null, endMs = null } = this.#span ?? {}
    const speechFinal = this.#speechFinal
    const final = { text, startMs, endMs, words: [], confidence: null, speechFinal }
    this.#span = null
    this.#text = ''
    this.#line.emit(text === '' ? { type: 'utterance-dropped' } : { type: 'final', ...final })
  }

  #ask(question: 'finalize' | 'end'): void {
    this.#frames.flush()
    if (this.#generation === 'none') {
      this.#line.soon(() => this.#answer(question))
    } else {
      if (this.#generation === 'fed') this.#finishGeneration(question === 'end')
      this.#held.push(question)
    }
  }

  #release(): void {
    while (this.#generation !== 'closing') {
      const next = this.#held.shift()
      if (next === undefined) return
      if (typeof next !== 'string') {
        this.#heldMs -= this.#msOf(next)
        this.#append(next)
      } else if (this.#generation === 'fed') {
        this.#finishGeneration(next === 'end')
        this.#held.unshift(next)
      } else {
        this.#answer(next)
      }
    }
  }

  #answer(question: 'finalize' | 'end'): void {
    if (question === 'end') this.#line.ended()
    else this.#line.emit({ type: 'finalized' })
  }

  #msOf(samples: Int16Array): number {
    return (samples.length * 1000) / this.#settings.sampleRateHz
  }
}

function kindOf(code: string, message: string): EngineErrorKind {
  const isRefusal = code === 'model_not_validated' || /\bmodel\b.*does not exist/.test(message)
  return isRefusal ? 'refused' : 'broken'
}
