import { defineMetrics } from '#telemetry/metric-definition.ts'

export const speechMetrics = defineMetrics({
  connections: {
    type: 'gauge',
    name: 'sluice_speech_connections',
    help: 'Connections of speech sessions.',
    across: 'sum',
  },
  sessions: {
    type: 'gauge',
    name: 'sluice_speech_sessions',
    help: 'Speech sessions.',
    across: 'sum',
  },
  waiting: {
    type: 'gauge',
    name: 'sluice_speech_sessions_waiting',
    help: 'Sessions without a client.',
    across: 'sum',
  },
  queued: {
    type: 'gauge',
    name: 'sluice_speech_queued_bytes',
    help: 'Audio that is not decoded yet.',
    across: 'sum',
  },
  unread: {
    type: 'gauge',
    name: 'sluice_speech_unread_bytes',
    help: 'Frames that clients have not read.',
    across: 'sum',
  },
  transcriptions: {
    type: 'gauge',
    name: 'sluice_speech_transcriptions_running',
    help: 'Transcriptions of files in progress.',
    across: 'sum',
  },
  ended: {
    type: 'counter',
    name: 'sluice_speech_ended_total',
    help: 'Sessions (`speech_session`) and files (`transcription`) that ended, by engine and outcome.',
    labels: ['kind', 'engine', 'outcome'],
  },
  audio: {
    type: 'counter',
    name: 'sluice_speech_audio_seconds_total',
    help: 'Audio of sessions and files, counted when they end.',
    labels: ['kind', 'engine'],
  },
  engineSessions: {
    type: 'gauge',
    name: 'sluice_speech_engine_sessions',
    help: 'Sessions and files that an engine works on.',
    across: 'sum',
    labels: ['engine'],
  },
  engineSessionsMax: {
    type: 'gauge',
    name: 'sluice_speech_engine_sessions_max',
    help: 'Sessions that an engine serves at once, of all workers.',
    across: 'sum',
    labels: ['engine'],
  },
  engineUp: {
    type: 'gauge',
    name: 'sluice_speech_engine_up',
    help: '0 while a worker uses an engine last because it failed.',
    across: 'min',
    labels: ['engine'],
  },
  engineFailures: {
    type: 'counter',
    name: 'sluice_speech_engine_failures_total',
    help: 'Failures of an engine; one at its capacity has not failed.',
    labels: ['engine'],
  },
})
