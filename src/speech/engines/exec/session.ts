import {
  EngineError,
  type EngineEvent,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import { bytesOf } from '#speech/engines/server-audio.ts'
import type { Program } from './program.ts'
import { type ExecMessage, encodeFrame } from './protocol.ts'

type ExecSessionOptions = EngineOpenOptions & {
  readonly program: Program
  readonly framed: boolean
  readonly sampleRateHz: number
}

/** Silence that ends an utterance in a program without finalize frames. */
const silenceMs = 700
/** Programs process audio in blocks; the extra silence fills the last one. */
const silenceExtraMs = 200
/** An utterance that is still open after this many silences is no longer awaited. */
const silencesMax = 3

/** Translates the messages of one program into events on the session's timeline. */
export class ExecSession implements EngineSession {
  readonly #options: ExecSessionOptions
  readonly #program: Program
  readonly #timeline: ProgramTimeline
  #isOver = false
  #hasEnd = false
  #hasPartial = false
  #processedMs = 0
  #isFinalizing = false
  /** Where the inserted silence ends, in program time; null if finalize was sent as a frame. */
  #silentUntilMs: number | null = null
  #silences = 0

  constructor(options: ExecSessionOptions) {
    const { program, sampleRateHz, framed, language, vocabulary, endpointingMs } = options
    this.#options = options
    this.#program = program
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
    if (this.#options.framed) this.#program.write(encodeFrame('finalize'))
    else this.#insertSilence()
  }

  end(): void {
    if (this.#isOver || this.#hasEnd) return
    this.#hasEnd = true
    if (this.#options.framed) this.#program.write(encodeFrame('end'))
    this.#program.endInput()
  }

  abort(): void {
    if (this.#isOver) return
    this.#isOver = true
    void this.#program.stop()
  }

  #onMessage(message: ExecMessage): void {
    if (this.#isOver) return
    if (message.type === 'partial' && message.text !== '') {
      this.#hasPartial = true
      this.#emit({ type: 'partial', text: message.text, ...this.#toSession(message) })
    }
    if (message.type === 'final') this.#onFinal(message)
    if ('audioMs' in message) this.#onProgress(message.audioMs)
    if (message.type === 'finalized') this.#finalized()
    if (message.type === 'done') this.#onDone()
  }

  #onFinal(message: ExecMessage & { type: 'final' }): void {
    const { text, confidence, speechFinal } = message
    const hadPartial = this.#hasPartial
    this.#hasPartial = false
    if (text === '') {
      if (hadPartial) this.#emit({ type: 'utterance-dropped' })
      return
    }
    const words = message.words.map(({ word, startMs, endMs, confidence }) => ({
      word,
      startMs: this.#timeline.toSessionMs(startMs),
      endMs: this.#timeline.toSessionMs(endMs),
      confidence,
    }))
    const span = this.#toSession(message)
    this.#emit({ type: 'final', text, words, confidence, speechFinal, ...span })
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
    this.#options.listener(event)
  }

  /** The listener may abort the session in any event. */
  #emit(event: EngineEvent): void {
    if (!this.#isOver) this.#options.listener(event)
  }

  #insertSilence(): void {
    const samplesOf = (ms: number) => Math.ceil((ms * this.#options.sampleRateHz) / 1000)
    this.#silences += 1
    this.#silentUntilMs = this.#timeline.programMs() + silenceMs
    const silence = new Int16Array(samplesOf(silenceMs + silenceExtraMs))
    this.#timeline.insertedSilence(silence.length)
    this.#writeSamples(silence)
  }

  #writeSamples(samples: Int16Array): void {
    const bytes = bytesOf(samples)
    this.#program.write(this.#options.framed ? encodeFrame('audio', bytes) : bytes)
  }

  #toSession({ startMs, endMs }: { startMs: number | null; endMs: number | null }) {
    const toMs = (ms: number | null) => (ms === null ? null : this.#timeline.toSessionMs(ms))
    return { startMs: toMs(startMs), endMs: toMs(endMs) }
  }
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
