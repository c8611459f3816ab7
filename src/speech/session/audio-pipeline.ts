import type { AudioDecoder } from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import type { Recognition } from '#speech/recognition/live-recognition.ts'
import type { RecognitionOptions, RecognitionStats } from '#speech/recognition/recognition.ts'
import type { SpeechSession } from './session.ts'
import { fromDecoderError, fromEngineError } from './session-error.ts'
import type { Transcriber } from './transcriber.ts'

/** Steps, each of at most 200 ms of audio, in one turn of the event loop. */
const stepsPerTurn = 16

/** Rejects with a `SessionError`; nothing stays allocated then. */
export async function openAudioPipeline(
  session: SpeechSession,
  transcriber: Transcriber,
  events: Pick<RecognitionOptions, 'signal' | 'listener'>,
): Promise<AudioPipeline> {
  const { query, handshake } = session.start
  const { credit: _, progress: __, ...options } = handshake.options
  const { language, engineName } = query
  const recognition = await session.deps
    .openRecognition({ ...options, ...events, language, engineName })
    .catch((error: unknown) => {
      throw fromEngineError(error)
    })
  try {
    const decoder = await openAudioDecoder(handshake.format, recognition.sampleRateHz, (gap) =>
      recognition.addGap(gap),
    )
    return new AudioPipeline(recognition, decoder, session, transcriber)
  } catch (error) {
    recognition.abort()
    throw fromDecoderError(error)
  }
}

/**
 * Moves the queued audio of one session through the decoder to the recognition, as fast as the
 * engine accepts it and never for long in one turn of the event loop. Owns decoder and recognition.
 */
export class AudioPipeline {
  readonly recognition: Recognition
  readonly decoder: AudioDecoder
  readonly #session: SpeechSession
  readonly #transcriber: Transcriber
  #samples = 0
  /** Decoded pieces of the current item. */
  #pieces: Iterator<Int16Array> | null = null
  #isEnding = false
  #isRunning = false
  #isStopped = false
  #nextTurn: ReturnType<typeof setImmediate> | null = null
  #stats: RecognitionStats | null = null

  constructor(
    recognition: Recognition,
    decoder: AudioDecoder,
    session: SpeechSession,
    transcriber: Transcriber,
  ) {
    this.recognition = recognition
    this.decoder = decoder
    this.#session = session
    this.#transcriber = transcriber
  }

  /** Processes what is queued; to be called after new input or when the recognition is writable. */
  run(): void {
    if (this.#nextTurn === null) this.#runTurn()
  }

  /** Audio decoded and written so far. */
  decodedMs(): number {
    return Math.round((this.#samples * 1000) / this.recognition.sampleRateHz)
  }

  /** Releases decoder and engine; idempotent. */
  stop(): RecognitionStats {
    this.#isStopped = true
    if (this.#nextTurn !== null) clearImmediate(this.#nextTurn)
    this.decoder.close()
    this.#stats ??= this.recognition.abort()
    return this.#stats
  }

  #runTurn(): void {
    this.#nextTurn = null
    // Writing may make the recognition writable and so call `run` again.
    if (this.#isRunning || this.#isStopped) return
    this.#isRunning = true
    try {
      let steps = 0
      while (!this.#isStopped && !this.#session.isReaderFull() && this.#step()) {
        if (++steps < stepsPerTurn) continue
        this.#nextTurn = setImmediate(() => this.#runTurn())
        break
      }
    } catch (error) {
      this.#isStopped = true
      this.#transcriber.fail(fromDecoderError(error))
    } finally {
      this.#isRunning = false
    }
  }

  /** Returns whether there may be more to do now. */
  #step(): boolean {
    if (this.#pieces !== null) return this.#writeNext(this.#pieces)
    const item = this.#session.queue.take()
    if (item === null) return false
    switch (item.type) {
      case 'audio':
        this.#pieces = this.decoder.decode(item.bytes)[Symbol.iterator]()
        break
      case 'finalize':
        this.recognition.finalize(item.id)
        break
      case 'end':
        this.#isEnding = true
        this.#pieces = this.decoder.end()[Symbol.iterator]()
    }
    this.#session.queue.resumeIfDrained()
    this.#transcriber.acknowledge()
    return true
  }

  #writeNext(pieces: Iterator<Int16Array>): boolean {
    if (this.recognition.writableMs() <= 0) return false
    const next = pieces.next()
    if (!next.done) {
      this.#samples += next.value.length
      if (next.value.length > 0) this.recognition.write(next.value)
      return true
    }
    this.#pieces = null
    if (!this.#isEnding) return true
    this.#isStopped = true
    this.#transcriber.endRecognition()
    return false
  }
}
