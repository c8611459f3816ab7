import type { AudioDecoder, AudioFormat } from '#speech/decoders/decoder.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import type {
  Recognition,
  RecognitionOptions,
  RecognitionStats,
} from '#speech/recognition/recognition.ts'
import { audioFault, engineFault } from './faults.ts'
import type { Inbox } from './inbox.ts'
import { createPump, type PumpDeps } from './pump.ts'

/** What makes text of the audio of one session: a decoder, a recognition, and what feeds them. */
export type Transcribing = {
  readonly recognition: Recognition
  readonly decoder: AudioDecoder
  wake(): void
  decodedMs(): number
  /** Gives back what a decoder and an engine cost; harmless when called twice. */
  stop(): RecognitionStats
}

export type TranscribingDeps = {
  readonly openRecognition: (options: RecognitionOptions) => Promise<Recognition>
}

/** Rejects with a `SessionError`; nothing is left behind then. */
export async function openTranscribing(
  deps: TranscribingDeps,
  session: {
    readonly options: RecognitionOptions
    readonly format: AudioFormat
    readonly inbox: Inbox
    readonly pump: Pick<PumpDeps, 'mayGoOn' | 'took' | 'reachedEnd' | 'failed'>
  },
): Promise<Transcribing> {
  const recognition = await deps.openRecognition(session.options).catch((error: unknown) => {
    throw engineFault(error)
  })
  const decoder = await openAudioDecoder(session.format, recognition.sampleRateHz).catch(
    (error: unknown) => {
      recognition.abort()
      throw audioFault(error)
    },
  )
  const pump = createPump({ ...session.pump, inbox: session.inbox, decoder, recognition })
  let known: RecognitionStats | null = null
  return {
    recognition,
    decoder,
    wake: pump.wake,
    decodedMs: pump.decodedMs,
    stop() {
      pump.stop()
      decoder.close()
      known ??= recognition.abort()
      return known
    },
  }
}
