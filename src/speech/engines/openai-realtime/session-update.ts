import type { JsonObject } from '#lib/json.ts'
import type { RealtimeSettings } from './engine.ts'
import { promptOf } from './realtime-frames.ts'

/** How a session is configured; without `findsTurns` the server is told not to look for pauses. */
export function sessionUpdate(settings: RealtimeSettings, findsTurns: boolean): JsonObject {
  const { config, sampleRateHz, options } = settings
  const prompt = promptOf(options.vocabulary)
  const transcription = {
    ...(config.model === undefined ? {} : { model: config.model }),
    language: options.language,
    ...(prompt === null ? {} : { prompt }),
  }
  const turnDetection = findsTurns
    ? { type: 'server_vad', silence_duration_ms: options.endpointingMs }
    : null
  if (config.dialect === 'beta') {
    return {
      type: 'transcription_session.update',
      session: {
        input_audio_format: 'pcm16',
        input_audio_transcription: transcription,
        turn_detection: turnDetection,
      },
    }
  }
  const format = { type: 'audio/pcm', rate: sampleRateHz }
  const input = { format, transcription, turn_detection: turnDetection }
  return { type: 'session.update', session: { type: 'transcription', audio: { input } } }
}
