import { AppError } from '#lib/errors.ts'
import type { Encoding } from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import type { Language } from '#speech/engine.ts'
import type {
  Recognition,
  RecognitionEvent,
  RecognitionOptions,
  RecognitionStats,
  Transcript,
} from '#speech/recognition/recognition.ts'
import { audioLost, callerGone, noAudio, recognitionFailed } from './failures.ts'
import type { SpooledAudio } from './spooled-audio.ts'

export type FileJob = {
  readonly audio: SpooledAudio
  readonly encoding: Encoding
  readonly language: Language
  readonly engineName: string | null
  readonly vocabulary: readonly string[]
  /** Whether speech that was lost with its engine may be missing; otherwise it is a failure. */
  readonly maySkip: boolean
  readonly signal: AbortSignal
}

/** Some finals, in their order; last, what became of the audio. */
type FilePart =
  | { readonly type: 'finals'; readonly finals: readonly Transcript[] }
  | { readonly type: 'end'; readonly stats: RecognitionStats }

export type FileParts = AsyncGenerator<FilePart, void, void>

export type OpenRecognition = (options: RecognitionOptions) => Promise<Recognition>

/** The silence after which an utterance is over, as in a session that does not say. */
const endpointingMs = 600
/** Pieces of at most 200 ms that are decoded in one turn of the event loop. */
const piecesPerTurn = 16

/**
 * A file made text of. It is decoded as far as the engine has room, so neither bytes nor samples of
 * it stand in memory; where nobody takes the finals, it waits. Rejects with an `AppError` (among
 * them the reason of the signal), an `AudioError` or an `EngineError`.
 */
export async function* transcribeFile(open: OpenRecognition, job: FileJob): FileParts {
  const listening = createListening(job)
  const options: RecognitionOptions = {
    language: job.language,
    engineName: job.engineName,
    vocabulary: job.vocabulary,
    partials: false,
    words: true,
    partialsPerSecondMax: 1,
    endpointingMs,
    live: false,
    signal: job.signal,
    listener: listening.hear,
  }
  const recognition = await open(options).catch((error: unknown) => {
    listening.check()
    throw error
  })
  try {
    yield* feedFile(recognition, job, listening)
    recognition.end()
    let stats = listening.ending()
    while (stats === null || listening.hasFinals()) {
      if (listening.hasFinals()) yield listening.takeFinals()
      else await listening.changed()
      stats = listening.ending()
    }
    yield { type: 'end', stats }
  } finally {
    recognition.abort()
  }
}

async function* feedFile(
  recognition: Recognition,
  { audio, encoding }: FileJob,
  listening: Listening,
): FileParts {
  const format = { encoding, container: 'auto', sampleRateHz: null, channels: 1 } as const
  const decoder = await openAudioDecoder(format, recognition.sampleRateHz)
  let samples = 0
  let steps = 0

  async function* feed(pieces: Iterable<Int16Array>): FileParts {
    for (const piece of pieces) {
      while (recognition.writableMs() <= 0) {
        await listening.changed()
        if (listening.hasFinals()) yield listening.takeFinals()
      }
      recognition.write(piece)
      samples += piece.length
      if (++steps % piecesPerTurn === 0) await new Promise(setImmediate)
      listening.check()
      if (listening.hasFinals()) yield listening.takeFinals()
    }
  }

  try {
    for await (const bytes of audio.read()) yield* feed(decoder.decode(bytes))
    yield* feed(decoder.end())
    if (samples === 0) throw noAudio()
  } finally {
    decoder.close()
  }
}

type Listening = {
  hear(event: RecognitionEvent): void
  hasFinals(): boolean
  takeFinals(): FilePart
  /** Null while it goes on; throws as `check` does. */
  ending(): RecognitionStats | null
  /** Throws why it broke off, once the finals from before then are taken. */
  check(): void
  /** Resolves with the next event; throws as `check` does. */
  changed(): Promise<void>
}

function createListening({ maySkip, signal }: Pick<FileJob, 'maySkip' | 'signal'>): Listening {
  let finals: Transcript[] = []
  let stats: RecognitionStats | null = null
  let failure: Error | null = null
  let next = Promise.withResolvers<void>()

  const wake = () => {
    next.resolve()
    next = Promise.withResolvers()
  }
  const fail = (error: Error) => {
    failure ??= error
    wake()
  }
  const check = () => {
    if (signal.aborted) throw reasonOf(signal)
    if (failure !== null && finals.length === 0) throw failure
  }
  signal.addEventListener('abort', wake, { once: true })

  return {
    hear(event) {
      if (event.type === 'transcript' && event.isFinal) finals.push(event)
      if (event.type === 'ended') stats = event.stats
      if (event.type === 'failed') fail(recognitionFailed(event.code))
      if (event.type === 'warning' && event.code === 'audio_lost' && !maySkip) {
        fail(audioLost(Number(event.details['start_ms']), Number(event.details['end_ms'])))
      }
      wake()
    },
    hasFinals: () => finals.length > 0,
    takeFinals() {
      const taken = finals
      finals = []
      return { type: 'finals', finals: taken }
    },
    ending() {
      check()
      return stats
    },
    check,
    async changed() {
      check()
      if (failure === null) await next.promise
      check()
    },
  }
}

function reasonOf({ reason }: AbortSignal): AppError {
  return reason instanceof AppError ? reason : callerGone(reason)
}
