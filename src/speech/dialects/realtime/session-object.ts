import { pcmRateHz, type RealtimeSettings, renderInclude } from './settings.ts'

/** The session as the client gets it: what is in force, so ignored settings show as null. */
export function renderSession(
  settings: RealtimeSettings,
  own: { readonly sessionId: string; readonly expiresAt: number; readonly isBeta: boolean },
) {
  const common = {
    id: own.sessionId,
    object: 'realtime.transcription_session',
    expires_at: own.expiresAt,
    include: renderInclude(settings),
  }
  const transcription = {
    ...(settings.model === null ? {} : { model: settings.model }),
    language: settings.languageTag,
    prompt: settings.prompt ?? '',
    ...(settings.keywords.length === 0 ? {} : { keywords: settings.keywords }),
  }
  const turn_detection = renderTurnDetection(settings)
  if (own.isBeta) {
    return {
      ...common,
      input_audio_format: settings.format,
      input_audio_transcription: transcription,
      input_audio_noise_reduction: null,
      turn_detection,
    }
  }
  const format = renderFormat(settings)
  const input = { format, transcription, noise_reduction: null, turn_detection }
  return { type: 'transcription', ...common, audio: { input } }
}

function renderFormat({ format }: RealtimeSettings) {
  if (format === 'pcm16') return { type: 'audio/pcm', rate: pcmRateHz }
  return { type: format === 'g711_ulaw' ? 'audio/pcmu' : 'audio/pcma' }
}

function renderTurnDetection({ turnDetection }: RealtimeSettings) {
  if (turnDetection === null) return null
  const { threshold, prefixPaddingMs, silenceMs } = turnDetection
  return {
    type: 'server_vad',
    threshold,
    prefix_padding_ms: prefixPaddingMs,
    silence_duration_ms: silenceMs,
  }
}
