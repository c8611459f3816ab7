/** Gauges of work in progress; zero at rest. */
export const workGauges: readonly string[] = [
  'sluice_generations_running',
  'sluice_responses_running',
  'sluice_websockets_open',
  'sluice_websockets_busy',
  'sluice_speech_connections',
  'sluice_speech_sessions',
  'sluice_speech_sessions_waiting',
  'sluice_speech_queued_bytes',
  'sluice_speech_unread_bytes',
  'sluice_queue_waiting',
  'sluice_upstream_in_flight',
  'sluice_jobs',
]
