import {
  EngineError,
  type EngineEvent,
  type EngineFeatures,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import { bytesOf } from '#speech/engines/server-audio.ts'
import { meanConfidence } from '#speech/engines/words.ts'
import type { Program } from './program.ts'
import { type ExecMessage, encodeFrame } from './protocol.ts'

/** Silence that ends an utterance in a program without finalize frames. */
const silenceMs = 700
/** Programs process audio in blocks; the extra silence fills the last one. */
const silenceExtraMs = 200
/** An utterance that is still open after this many silences is no longer awaited. */
const silencesMax = 3

export type ProgramIo = {
  /** Only these results are passed on. */
  readonly features: EngineFeatures
  readonly framed: boolean
  readonly sampleRateHz: number
}

/** Translates the messages of one program into events on the session's timeline. */
export class ExecSession implements EngineSession {
  readonly #program: Program
  readonly #listener: EngineOpenOptions['listener']
  readonly #features: EngineFeatures
  readonly #framed: boolean
  readonly #sampleRateHz: number
  readonly #timeline: ProgramTimeline
  #isOver = false
  #hasEnd = false
  #hasPartial = false
  #processedMs = 0
  #isFinalizing = false
  /** Where the inserted silence ends, in program time; null if finalize was sent as a frame. */
  #silentUntilMs: number | null = null
  #silences = 0

  constructor(
    program: Program,
    { language, vocabulary, endpointingMs, listener }: EngineOpenOptions,
    { features, framed, sampleRateHz }: ProgramIo,
  ) {
    this.#program = program
    this.#listener = listener
    this.#features = features
    this.#framed = framed
    this.#sampleRateHz = sampleRateHz
    this.#timeline = new ProgramTimeline(sampleRateHz)
    program.serve({
      received: (message) => this.#onMessage(message),
      failed: (error) => this.#end({ type: 'failed', error }),
      exited: (code) => this.#onExited(code),
    })
    if (!framed) return
    const content = JSON.stringify({ language, vocabulary, endpointing_ms: endpointingMs })
    program.write(encodeFrame('options', new TextEncoder().encode(content)))
  }

  write(samples: Int16Array): void {
    if (this.#isOver || this.#hasEnd) return
    // Speech after the silence must not be ended by another silence.
    this.#silences = silencesMax
    this.#timeline.wrote(samples.length)
    this.#writeSamples(samples)
  }

  finalize(): void {
    if (this.#isOver || this.#hasEnd || this.#isFinalizing) return
    this.#isFinalizing = true
    this.#silences = 0
    if (this.#framed) this.#program.write(encodeFrame('finalize'))
    else this.#insertSilence()
  }

  end(): void {
    if (this.#isOver || this.#hasEnd) return
    this.#hasEnd = true
    if (this.#framed) this.#program.write(encodeFrame('end'))
    this.#program.endInput()
  }

  abort(): void {
    if (this.#isOver) return
    this.#isOver = true
    void this.#program.stop()
  }

  #onMessage(message: ExecMessage | null): void {
    this.#emit({ type: 'alive' })
    if (message === null || this.#isOver) return
    if (message.type === 'partial') this.#onPartial(message)
    if (message.type === 'final') this.#onFinal(message)
    if ('audio_s' in message) this.#onProgress(toMs(message.audio_s))
    if (message.type === 'finalized') this.#finalized()
    if (message.type === 'done') this.#onDone()
  }

  #onPartial({ text, start, end }: Extract<ExecMessage, { type: 'partial' }>): void {
    if (text.trim() === '') return
    this.#hasPartial = true
    if (!this.#features.partials) return
    this.#emit({
      type: 'partial',
      text: text.trim(),
      startMs: this.#toSessionMs(start),
      endMs: this.#toSessionMs(end),
    })
  }

  #onFinal(final: Extract<ExecMessage, { type: 'final' }>): void {
    const hadPartial = this.#hasPartial
    this.#hasPartial = false
    const text = final.text.trim()
    if (text === '') {
      if (hadPartial) this.#emit({ type: 'utterance-dropped' })
      return
    }
    const confidenceOf = (value: unknown) =>
      this.#features.confidence ? clampConfidence(value) : null
    const words = (final.words ?? []).map(({ word, start, end, confidence }) => ({
      word,
      startMs: this.#timeline.toSessionMs(start * 1000),
      endMs: this.#timeline.toSessionMs(end * 1000),
      confidence: confidenceOf(confidence),
    }))
    this.#emit({
      type: 'final',
      text,
      startMs: this.#toSessionMs(final.start) ?? words[0]?.startMs ?? null,
      endMs: this.#toSessionMs(final.end) ?? words.at(-1)?.endMs ?? null,
      words: this.#features.words ? words : [],
      confidence: confidenceOf(final.confidence) ?? meanConfidence(words),
      speechFinal: final.speech_final !== false,
    })
  }

  #onProgress(programMs: number | null): void {
    if (this.#isOver || programMs === null) return
    const processedMs = this.#timeline.toSessionMs(programMs)
    if (processedMs > this.#processedMs) {
      this.#processedMs = processedMs
      this.#emit({ type: 'progress', processedMs, estimated: false })
    }
    if (this.#silentUntilMs === null || programMs < this.#silentUntilMs) return
    if (this.#hasPartial && this.#silences < silencesMax) this.#insertSilence()
    else this.#finalized()
  }

  #finalized(): void {
    if (!this.#isFinalizing) return
    this.#isFinalizing = false
    this.#silentUntilMs = null
    this.#emit({ type: 'finalized' })
  }

  #onDone(): void {
    if (this.#hasEnd) {
      this.#program.release()
      this.#succeed()
    } else {
      void this.#program.stop()
      this.#fail('the program was done before the end of its audio')
    }
  }

  #onExited(code: number | null) {
    if (code === 0 && this.#hasEnd) return this.#succeed()
    const how = code === null ? 'was killed' : `exited with code ${code}`
    const when = this.#hasEnd ? 'before it was done' : 'before the end of its audio'
    this.#fail(`the program ${how} ${when}`)
  }

  #fail(message: string): void {
    this.#end({ type: 'failed', error: new EngineError('broken', message) })
  }

  #succeed(): void {
    this.#finalized()
    this.#end({ type: 'ended' })
  }

  #end(event: EngineEvent): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#listener(event)
  }

  /** The listener may abort the session in any event. */
  #emit(event: EngineEvent): void {
    if (!this.#isOver) this.#listener(event)
  }

  #insertSilence(): void {
    const samplesOf = (ms: number) => Math.ceil((ms * this.#sampleRateHz) / 1000)
    this.#silences += 1
    this.#silentUntilMs = this.#timeline.programMs() + silenceMs
    const silence = new Int16Array(samplesOf(silenceMs + silenceExtraMs))
    this.#timeline.insertedSilence(silence.length)
    this.#writeSamples(silence)
  }

  #writeSamples(samples: Int16Array): void {
    const bytes = bytesOf(samples)
    this.#program.write(this.#framed ? encodeFrame('audio', bytes) : bytes)
  }

  #toSessionMs(seconds: number | null | undefined): number | null {
    const programMs = toMs(seconds)
    return programMs === null ? null : this.#timeline.toSessionMs(programMs)
  }
}

function toMs(seconds: number | null | undefined): number | null {
  return seconds == null ? null : Math.round(seconds * 1000)
}

function clampConfidence(value: unknown): number | null {
  return typeof value === 'number' ? Math.min(1, Math.max(0, value)) : null
}

/** Silences that a time may be before; older ones are before every time in use. */
const timelineSilencesMax = 64

/**
 * Converts program time to session time. They differ by the inserted silences, during which session
 * time stands still.
 */
class ProgramTimeline {
  readonly #sampleRateHz: number
  readonly #silences: { readonly fromMs: number; readonly lengthMs: number }[] = []
  #oldSilenceMs = 0
  #programSamples = 0
  #sessionSamples = 0

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz
  }

  wrote(samples: number): void {
    this.#programSamples += samples
    this.#sessionSamples += samples
  }

  insertedSilence(samples: number): void {
    this.#silences.push({ fromMs: this.programMs(), lengthMs: this.#toMs(samples) })
    this.#programSamples += samples
    if (this.#silences.length <= timelineSilencesMax) return
    this.#oldSilenceMs += this.#silences.shift()?.lengthMs ?? 0
  }

  /** Audio written to the program. */
  programMs(): number {
    return this.#toMs(this.#programSamples)
  }

  /** Never after the audio of the session. */
  toSessionMs(programMs: number): number {
    const silenceMs = this.#silences.reduce(
      (sum, { fromMs, lengthMs }) => sum + Math.min(lengthMs, Math.max(0, programMs - fromMs)),
      this.#oldSilenceMs,
    )
    const writtenMs = Math.floor(this.#toMs(this.#sessionSamples))
    return Math.max(0, Math.min(Math.round(programMs - silenceMs), writtenMs))
  }

  #toMs(samples: number): number {
    return (samples * 1000) / this.#sampleRateHz
  }
}
