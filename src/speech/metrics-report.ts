import type { MetricRegistry, Sample } from '#telemetry/metrics.ts'
import type { Ledger } from '#usage/ledger.ts'
import type { SpeechUse } from '#usage/record.ts'
import type { EnginePool } from './engines/pool.ts'
import { speechMetrics } from './metrics.ts'
import type { SpeechSessions } from './session/sessions.ts'
import type { Transcriptions } from './transcriptions/transcriptions.ts'

const millisPerSecond = 1_000

/** Counts ended sessions and files, and passes them on to the ledger. */
export function reportUse(
  metrics: MetricRegistry,
  ledger: Ledger | null,
): (use: SpeechUse) => void {
  const ended = metrics.counter(speechMetrics.ended)
  const audio = metrics.counter(speechMetrics.audio)
  return (use) => {
    const { kind, outcome } = use
    const engine = use.engine ?? 'none'
    ended.add(1, kind, engine, outcome)
    audio.add(use.audioMs / millisPerSecond, kind, engine)
    ledger?.addSpeech(use)
  }
}

export function addSpeechGauges(
  metrics: MetricRegistry,
  {
    speech,
    transcriptions,
    pool,
  }: {
    speech: SpeechSessions
    transcriptions: Pick<Transcriptions, 'running'>
    pool: EnginePool
  },
): void {
  metrics.gauge(speechMetrics.connections, () => speech.metrics().connections)
  metrics.gauge(speechMetrics.sessions, () => speech.metrics().sessions)
  metrics.gauge(speechMetrics.waiting, () => speech.metrics().waiting)
  metrics.gauge(speechMetrics.queued, () => speech.metrics().queuedBytes)
  metrics.gauge(speechMetrics.unread, () => speech.metrics().unreadBytes)
  metrics.gauge(speechMetrics.transcriptions, transcriptions.running)
  type EngineState = ReturnType<EnginePool['states']>[number]
  const perEngine = (read: (state: EngineState) => number) => () =>
    pool.states().map((state): Sample => [read(state), state.name])
  metrics.gauge(
    speechMetrics.engineSessions,
    perEngine(({ sessions }) => sessions),
  )
  metrics.gauge(
    speechMetrics.engineSessionsMax,
    perEngine(({ sessionsMax }) => sessionsMax),
  )
  metrics.gauge(
    speechMetrics.engineUp,
    perEngine(({ isInBackoff }) => Number(!isInBackoff)),
  )
  metrics.observeCounter(
    speechMetrics.engineFailures,
    perEngine(({ failuresTotal }) => failuresTotal),
  )
}
