import { programEnvironment } from '#config/load.ts'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import { createEnginePool } from '#speech/engines/pool.ts'
import { openRecognition } from '#speech/recognition/open-recognition.ts'
import type { RecognitionOptions } from '#speech/recognition/recognition.ts'
import { createSpeechSessions } from '#speech/session/sessions.ts'
import { createTranscriptions } from '#speech/transcriptions/transcriptions.ts'
import type { World } from './world.ts'

/** Speech to text, by sockets and in files, over the same engines. */
export async function composeSpeech({ config, log, clock }: World) {
  const pool = createEnginePool(config.engine, { log, environment: programEnvironment() })
  const recognizing = { pool, settings: config.speech, log }
  const parts = {
    openRecognition: (options: RecognitionOptions) => openRecognition(recognizing, options),
    openAudioDecoder,
  }
  const speech = createSpeechSessions({ ...parts, config, languages: pool.languages, log })
  const transcriptions = await createTranscriptions({ ...parts, config, pool, log, now: clock.now })
  return {
    speech,
    transcriptions,
    async close() {
      speech.close()
      await pool.close()
    },
  }
}
