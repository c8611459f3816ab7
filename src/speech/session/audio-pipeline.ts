import type { AudioDecoder, AudioFormat } from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import type { Recognition } from '#speech/recognition/live-recognition.ts'
import type {
  OpenRecognition,
  RecognitionOptions,
  RecognitionStats,
} from '#speech/recognition/recognition.ts'
import type { AudioQueue } from './audio-queue.ts'
import { fromDecoderError, fromEngineError, type SessionError } from './session-error.ts'

export type AudioPipelineOptions = {
  readonly recognition: RecognitionOptions
  readonly format: AudioFormat
  readonly queue: AudioQueue
  /** False suspends the pipeline until the next `run`. */
  readonly mayContinue: () => boolean
  /** An item was taken from the queue. */
  readonly onTaken: () => void
  /** All audio up to the end was written to the recognition. */
  readonly onEnd: () => void
  /** Decoding failed; the pipeline has stopped. */
  readonly onFailed: (error: SessionError) => void
}

/** Steps, each of at most 200 ms of audio, in one turn of the event loop. */
const stepsPerTurn = 16

/** Rejects with a `SessionError`; nothing stays allocated then. */
export async function openAudioPipeline(
  open: OpenRecognition,
  options: AudioPipelineOptions,
): Promise<AudioPipeline> {
  const recognition = await open(options.recognition).catch((error: unknown) => {
    throw fromEngineError(error)
  })
  const decoder = await openAudioDecoder(options.format, recognition.sampleRateHz).catch(
    (error: unknown) => {
      recognition.abort()
      throw fromDecoderError(error)
    },
  )
  return new AudioPipeline(recognition, decoder, options)
}

/**
 * Moves the queued audio of one session through the decoder to the recognition, as fast as the
 * engine accepts it and never for long in one turn of the event loop. Owns decoder and recognition.
 */
export class AudioPipeline {
  readonly recognition: Recognition
  readonly decoder: AudioDecoder
  readonly #options: AudioPipelineOptions
  #samples = 0
  /** Decoded pieces of the current item. */
  #pieces: Iterator<Int16Array> | null = null
  #isEnding = false
  #isRunning = false
  #isStopped = false
  #nextTurn: ReturnType<typeof setImmediate> | null = null
  #stats: RecognitionStats | null = null

  constructor(recognition: Recognition, decoder: AudioDecoder, options: AudioPipelineOptions) {
    this.recognition = recognition
    this.decoder = decoder
    this.#options = options
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
      while (!this.#isStopped && this.#options.mayContinue() && this.#step()) {
        if (++steps < stepsPerTurn) continue
        this.#nextTurn = setImmediate(() => this.#runTurn())
        break
      }
    } catch (error) {
      this.#isStopped = true
      this.#options.onFailed(fromDecoderError(error))
    } finally {
      this.#isRunning = false
    }
  }

  /** Returns whether there may be more to do now. */
  #step(): boolean {
    if (this.#pieces !== null) return this.#writeNext(this.#pieces)
    const item = this.#options.queue.take()
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
    this.#options.onTaken()
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
    this.#options.onEnd()
    return false
  }
}
