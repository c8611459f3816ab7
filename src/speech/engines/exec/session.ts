import {
  EngineError,
  type EngineEvent,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import { frame } from './frames.ts'
import type { ExecMessage } from './messages.ts'
import type { Program } from './program.ts'
import { createTimeline, type Timeline } from './timeline.ts'

type SessionOptions = EngineOpenOptions & {
  readonly program: Program
  readonly framed: boolean
  readonly sampleRateHz: number
}

/** So much silence ends an utterance in a program that cannot be asked for finals. */
const silenceMs = 700
/** Programs take audio in blocks; this makes sure that the silence itself is not left in one. */
const silenceExtraMs = 200
/** An utterance that is still open after so many silences is not waited for any longer. */
const silencesMax = 3

export function createExecSession(options: SessionOptions): EngineSession {
  return new ExecSession(options)
}

/** Messages of one program → events on the caller's clock. */
class ExecSession implements EngineSession {
  readonly #options: SessionOptions
  readonly #program: Program
  readonly #timeline: Timeline
  #isOver = false
  #hasEnd = false
  #hasPartial = false
  #processedMs = 0
  #isFinalizing = false
  /** Where the silence is over, on the program's clock; null where it was asked with a frame. */
  #silentUntilMs: number | null = null
  #silences = 0

  constructor(options: SessionOptions) {
    this.#options = options
    this.#program = options.program
    this.#timeline = createTimeline(options.sampleRateHz)
    this.#program.serve({
      message: (message) => this.#hear(message),
      failed: (error) => this.#end({ type: 'failed', error }),
      exited: (code) => this.#exited(code),
    })
    if (options.framed) this.#program.write(frame('options', optionsContent(options)))
  }

  write(samples: Int16Array): void {
    if (this.#isOver || this.#hasEnd) return
    // What is said after the silence is not for another silence to end.
    this.#silences = silencesMax
    this.#timeline.wrote(samples.length)
    this.#writeSamples(samples)
  }

  finalize(): void {
    if (this.#isOver || this.#hasEnd || this.#isFinalizing) return
    this.#isFinalizing = true
    this.#silences = 0
    if (this.#options.framed) this.#program.write(frame('finalize'))
    else this.#slipSilenceIn()
  }

  end(): void {
    if (this.#isOver || this.#hasEnd) return
    this.#hasEnd = true
    if (this.#options.framed) this.#program.write(frame('end'))
    this.#program.endInput()
  }

  abort(): void {
    if (this.#isOver) return
    this.#isOver = true
    void this.#program.stop()
  }

  #hear(message: ExecMessage): void {
    if (this.#isOver) return
    if (message.type === 'partial') this.#hearPartial(message)
    if (message.type === 'final') this.#hearFinal(message)
    if ('audioMs' in message) this.#advance(message.audioMs)
    if (message.type === 'finalized') this.#finalized()
    if (message.type === 'done') this.#done()
  }

  #hearPartial({ text, ...times }: ExecMessage & { type: 'partial' }): void {
    if (text === '') return
    this.#hasPartial = true
    this.#tell({ type: 'partial', text, ...this.#span(times) })
  }

  #hearFinal(message: ExecMessage & { type: 'final' }): void {
    const { text, confidence, speechFinal } = message
    const hadPartial = this.#hasPartial
    this.#hasPartial = false
    if (text === '') {
      if (hadPartial) this.#tell({ type: 'utterance-dropped' })
      return
    }
    const words = message.words.map((word) => ({ ...word, ...this.#bounds(word) }))
    this.#tell({ type: 'final', text, words, confidence, speechFinal, ...this.#span(message) })
  }

  #advance(programMs: number | null): void {
    if (this.#isOver || programMs === null) return
    const processedMs = this.#timeline.toCallerMs(programMs)
    if (processedMs > this.#processedMs) {
      this.#processedMs = processedMs
      this.#tell({ type: 'progress', processedMs, estimated: false })
    }
    if (this.#silentUntilMs === null || programMs < this.#silentUntilMs) return
    if (this.#hasPartial && this.#silences < silencesMax) this.#slipSilenceIn()
    else this.#finalized()
  }

  #finalized(): void {
    if (!this.#isFinalizing) return
    this.#isFinalizing = false
    this.#silentUntilMs = null
    this.#tell({ type: 'finalized' })
  }

  #done(): void {
    if (this.#hasEnd) {
      this.#program.release()
      this.#succeed()
    } else {
      void this.#program.stop()
      this.#fail('the program was done before its audio was')
    }
  }

  #exited(code: number | null): void {
    if (code === 0 && this.#hasEnd) {
      this.#succeed()
      return
    }
    const how = code === null ? 'was killed' : `ended with code ${code}`
    const when = this.#hasEnd ? 'before it was done' : 'in the midst of its audio'
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

  /** The caller may end the session in any event. */
  #tell(event: EngineEvent): void {
    if (!this.#isOver) this.#options.listener(event)
  }

  #slipSilenceIn(): void {
    const { sampleRateHz } = this.#options
    const samples = (ms: number) => Math.ceil((ms * sampleRateHz) / 1000)
    this.#silences += 1
    this.#silentUntilMs = this.#timeline.givenMs() + silenceMs
    const silence = new Int16Array(samples(silenceMs + silenceExtraMs))
    this.#timeline.slippedIn(silence.length)
    this.#writeSamples(silence)
  }

  #writeSamples(samples: Int16Array): void {
    const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)
    this.#program.write(this.#options.framed ? frame('audio', bytes) : bytes)
  }

  #span({ startMs, endMs }: { startMs: number | null; endMs: number | null }) {
    const at = (ms: number | null) => (ms === null ? null : this.#timeline.toCallerMs(ms))
    return { startMs: at(startMs), endMs: at(endMs) }
  }

  #bounds({ startMs, endMs }: { startMs: number; endMs: number }) {
    const { toCallerMs } = this.#timeline
    return { startMs: toCallerMs(startMs), endMs: toCallerMs(endMs) }
  }
}

function optionsContent({ language, vocabulary, endpointingMs }: EngineOpenOptions): Uint8Array {
  return new TextEncoder().encode(
    JSON.stringify({ language, vocabulary, endpointing_ms: endpointingMs }),
  )
}
