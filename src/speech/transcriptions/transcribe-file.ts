import { AppError } from '#lib/errors.ts'
import type { Encoding } from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import type { Language } from '#speech/engine.ts'
import type { Recognition } from '#speech/recognition/live-recognition.ts'
import type {
  OpenRecognition,
  RecognitionEvent,
  RecognitionStats,
  Transcript,
} from '#speech/recognition/recognition.ts'
import {
  audioLost,
  clientDisconnected,
  invalidField,
  messages,
  recognitionFailed,
} from './errors.ts'
import type { SpooledAudio } from './spooled-audio.ts'

export type FileJob = {
  readonly audio: SpooledAudio
  readonly encoding: Encoding
  readonly language: Language
  readonly engineName: string | null
  readonly vocabulary: readonly string[]
  /** Whether the transcript may miss speech lost in engine failures; otherwise the job fails. */
  readonly allowsGaps: boolean
  readonly signal: AbortSignal
}

/** Finals in order; last, the statistics. */
type FilePart =
  | { readonly type: 'finals'; readonly finals: readonly Transcript[] }
  | { readonly type: 'end'; readonly stats: RecognitionStats }

export type FileParts = AsyncGenerator<FilePart, void, void>

/** The default of live sessions. */
const endpointingMs = 600
/** Pieces, each of at most 200 ms, decoded in one turn of the event loop. */
const piecesPerTurn = 16

/**
 * Transcribes a file. It is decoded as fast as the engine accepts audio and the finals are consumed,
 * so it is never held in memory. Rejects with an `AppError` (including the signal's reason), an
 * `AudioError` or an `EngineError`.
 */
export async function* transcribeFile(open: OpenRecognition, job: FileJob): FileParts {
  const results = new FileResults(job)
  const recognition = await open({
    language: job.language,
    engineName: job.engineName,
    vocabulary: job.vocabulary,
    partials: false,
    words: true,
    partialsPerSecondMax: 1,
    endpointingMs,
    live: false,
    signal: job.signal,
    listener: (event) => results.onEvent(event),
  }).catch((error: unknown) => {
    results.throwIfFailed()
    throw error
  })
  try {
    yield* decodeFile(recognition, job, results)
    recognition.end()
    let stats = results.stats()
    while (stats === null || results.hasFinals()) {
      if (results.hasFinals()) yield results.takeFinals()
      else await results.changed()
      stats = results.stats()
    }
    yield { type: 'end', stats }
  } finally {
    recognition.abort()
  }
}

async function* decodeFile(
  recognition: Recognition,
  { audio, encoding }: FileJob,
  results: FileResults,
): FileParts {
  const format = { encoding, container: 'auto', sampleRateHz: null, channels: 1 } as const
  const decoder = await openAudioDecoder(format, recognition.sampleRateHz)
  let samples = 0
  let steps = 0

  async function* write(pieces: Iterable<Int16Array>): FileParts {
    for (const piece of pieces) {
      while (recognition.writableMs() <= 0) {
        await results.changed()
        if (results.hasFinals()) yield results.takeFinals()
      }
      recognition.write(piece)
      samples += piece.length
      if (++steps % piecesPerTurn === 0) await new Promise(setImmediate)
      results.throwIfFailed()
      if (results.hasFinals()) yield results.takeFinals()
    }
  }

  try {
    for await (const bytes of audio.read()) yield* write(decoder.decode(bytes))
    yield* write(decoder.end())
    if (samples === 0) throw invalidField('file', messages.noAudio, 'bad_audio')
  } finally {
    decoder.close()
  }
}

/** Collects the results of one recognition until they are consumed. */
class FileResults {
  readonly #allowsGaps: boolean
  readonly #signal: AbortSignal
  #finals: Transcript[] = []
  #stats: RecognitionStats | null = null
  #failure: Error | null = null
  #next = Promise.withResolvers<void>()

  constructor({ allowsGaps, signal }: FileJob) {
    this.#allowsGaps = allowsGaps
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake(), { once: true })
  }

  onEvent(event: RecognitionEvent): void {
    if (event.type === 'transcript' && event.isFinal) this.#finals.push(event)
    if (event.type === 'ended') this.#stats = event.stats
    if (event.type === 'failed') this.#failure ??= recognitionFailed(event.code)
    if (event.type === 'warning' && event.code === 'audio_lost' && !this.#allowsGaps) {
      const { start_ms: startMs, end_ms: endMs } = event.details
      this.#failure ??= audioLost(Number(startMs), Number(endMs))
    }
    this.#wake()
  }

  hasFinals(): boolean {
    return this.#finals.length > 0
  }

  takeFinals(): FilePart {
    return { type: 'finals', finals: this.#finals.splice(0) }
  }

  /** Null until the recognition has ended; throws like `throwIfFailed`. */
  stats(): RecognitionStats | null {
    this.throwIfFailed()
    return this.#stats
  }

  /** Throws the failure once the finals before it were taken. */
  throwIfFailed(): void {
    const { aborted, reason } = this.#signal
    if (aborted) throw reason instanceof AppError ? reason : clientDisconnected(reason)
    if (this.#failure !== null && this.#finals.length === 0) throw this.#failure
  }

  /** Resolves with the next event; throws like `throwIfFailed`. */
  async changed(): Promise<void> {
    this.throwIfFailed()
    if (this.#failure === null) await this.#next.promise
    this.throwIfFailed()
  }

  #wake(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }
}
