import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '#lib/errors.ts'
import type { Encoding } from '#speech/decoders/decoder.ts'
import { openAudioDecoder, sniff, sniffFrames } from '#speech/decoders/open-decoder.ts'
import type { Language } from '#speech/engine.ts'
import type { Recognition } from '#speech/recognition/live-recognition.ts'
import type {
  OpenRecognition,
  RecognitionEvent,
  RecognitionStats,
  Transcript,
} from '#speech/recognition/recognition.ts'
import { spool } from '#storage/spool.ts'
import {
  audioLost,
  clientDisconnected,
  invalidField,
  messages,
  recognitionFailed,
} from './errors.ts'

/** An uploaded file on disk, until it is closed. */
export type SpooledAudio = Awaited<ReturnType<typeof spoolAudio>>

const chunkBytes = 65_536

/**
 * Writes the upload to an unlinked file, so that nothing remains however this process ends. Throws
 * the errors of `spool`; nothing remains then either.
 */
export async function spoolAudio(
  source: AsyncIterable<Uint8Array>,
  options: { folder: string; bytesMax: number; filename: string | null },
) {
  const path = join(options.folder, Bun.randomUUIDv7())
  const { bytesMax } = options
  const { bytes, head } = await spool(source, path, { bytesMax, param: 'file' })
  try {
    const file = await open(path)
    return {
      filename: options.filename,
      bytes,
      /** The first bytes. */
      head,
      async *read(): AsyncGenerator<Uint8Array, void, void> {
        for (;;) {
          const { bytesRead, buffer } = await file.read(Buffer.alloc(chunkBytes), 0, chunkBytes)
          if (bytesRead === 0) return
          yield buffer.subarray(0, bytesRead)
        }
      },
      /** Idempotent. */
      close: () => file.close(),
    }
  } finally {
    await rm(path, { force: true })
  }
}

/**
 * Detects the encoding by the first bytes. The file name only counts for MP3, whose streams may
 * start with anything. Throws `invalid_request` for unsupported formats.
 */
export function detectEncoding({ head, filename }: SpooledAudio): Encoding {
  const found = sniff(head) ?? sniffFrames(head)
  if (found?.encoding) return found.encoding
  if (found === null && /\.(mp3|mpga|mpeg)$/i.test(filename ?? '')) return 'mp3'
  const format = found === null ? 'is unknown' : `is ${found.name}`
  throw invalidField('file', messages.unsupportedFormat(format), 'unsupported_file_format')
}

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

/** Finals in order; last, the statistics, and why the transcript ends before the audio, if it does. */
export type FilePart =
  | { readonly type: 'finals'; readonly finals: readonly Transcript[] }
  | { readonly type: 'end'; readonly stats: RecognitionStats; readonly incomplete: AppError | null }

export type FileParts = AsyncGenerator<FilePart, void, void>

const deadlines: readonly AppError['kind'][] = ['upstream_gap_timeout', 'upstream_total_timeout']
/** The default of live sessions. */
const endpointingMs = 600
/** Pieces, each of at most 200 ms, decoded in one turn of the event loop. */
const piecesPerTurn = 16

/**
 * Transcribes a file. It is decoded as fast as the engine accepts audio and the finals are consumed,
 * so it is never held in memory. Rejects with an `AppError` (including the signal's reason), an
 * `AudioError` or an `EngineError`.
 */
export async function* transcribeFile(openRecognition: OpenRecognition, job: FileJob): FileParts {
  const results = new FileResults(job)
  const recognition = await openRecognition({
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
    yield { type: 'end', stats, incomplete: null }
  } catch (error) {
    const incomplete = results.deadlineAfterText(error)
    if (incomplete === null) throw error
    if (results.hasFinals()) yield results.takeFinals()
    yield { type: 'end', stats: recognition.stats(), incomplete }
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
  const decoder = await openAudioDecoder(format, recognition.sampleRateHz, (gap) =>
    recognition.addGap(gap),
  )
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
  #hasText = false
  #next = Promise.withResolvers<void>()

  constructor({ allowsGaps, signal }: FileJob) {
    this.#allowsGaps = allowsGaps
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake(), { once: true })
  }

  onEvent(event: RecognitionEvent): void {
    if (event.type === 'transcript' && event.isFinal) {
      this.#hasText = true
      this.#finals.push(event)
    }
    if (event.type === 'ended') this.#stats = event.stats
    if (event.type === 'failed') this.#failure ??= recognitionFailed(event.code)
    if (event.type === 'warning' && event.code === 'audio_lost' && !this.#allowsGaps) {
      const { reason, start_ms: startMs, end_ms: endMs } = event.details
      if (reason === 'engine') this.#failure ??= audioLost(Number(startMs), Number(endMs))
    }
    this.#wake()
  }

  hasFinals(): boolean {
    return this.#finals.length > 0
  }

  takeFinals(): FilePart {
    return { type: 'finals', finals: this.#finals.splice(0) }
  }

  /** The error, if it is a missed deadline and the text before it is worth returning; else null. */
  deadlineAfterText(error: unknown): AppError | null {
    const isDeadline = error instanceof AppError && deadlines.includes(error.kind)
    return isDeadline && this.#hasText ? error : null
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
