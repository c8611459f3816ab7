import type { Auth } from '#auth/auth.ts'
import { programEnvironment } from '#config/load.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import { type Foundation, module } from '#module.ts'
import { openAudioDecoder } from './decoders/open-decoder.ts'
import { createEnginePool } from './engines/pool.ts'
import { openRecognition } from './recognition/open-recognition.ts'
import type { RecognitionOptions } from './recognition/recognition.ts'
import { speechSocket } from './routes.ts'
import { createSpeechSessions, type SpeechSessions } from './session/sessions.ts'
import { transcriptionRoutes } from './transcriptions/routes.ts'
import { createTranscriptions, type Transcriptions } from './transcriptions/transcriptions.ts'

/** Speech to text, over WebSockets and for files, on the same engines. */
export const speechModule = module({
  name: 'speech',
  async start({ config, log, now, metrics }: Foundation) {
    const pool = createEnginePool(config.engine, { log, environment: programEnvironment() })
    const recognizing = { pool, settings: config.speech, log }
    const parts = {
      openRecognition: (options: RecognitionOptions) => openRecognition(recognizing, options),
      openAudioDecoder,
    }
    const speech = createSpeechSessions({ ...parts, config, languages: pool.languages, log })
    const gauge = (name: string, help: string, read: () => number) =>
      metrics.gauge({ name: `sluice_speech_${name}`, help }, read)
    gauge('connections', 'Connections of speech sessions.', () => speech.gauges().connections)
    gauge('sessions', 'Speech sessions.', () => speech.gauges().sessions)
    gauge('sessions_waiting', 'Sessions without a connected client.', () => speech.gauges().waiting)
    gauge('queued_bytes', 'Audio that is not decoded yet.', () => speech.gauges().queuedBytes)
    gauge('unread_bytes', 'Frames that the client has not read.', () => speech.gauges().unreadBytes)
    const transcriptions = await createTranscriptions({ ...parts, config, pool, log, now })
    return {
      services: { speech, transcriptions },
      async close() {
        speech.close()
        await pool.close()
      },
    }
  },
  routes: (
    services: Foundation & {
      auth: Auth
      sockets: OpenSockets
      speech: SpeechSessions
      transcriptions: Transcriptions
    },
  ) => [speechSocket({ ...services, sessions: services.speech }), transcriptionRoutes(services)],
})
