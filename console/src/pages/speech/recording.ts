import { signal } from '@preact/signals'
import { credential } from '../../session/credential.ts'
import { createLatency } from './latency.ts'
import { levelOf, quietDbfs } from './level.ts'
import {
  type LiveSession,
  openLiveSession,
  type Progress,
  type SessionReady,
  type SessionStats,
} from './live-session.ts'
import { type Microphone, MicrophoneError, openMicrophone } from './microphone.ts'
import { type Segment, withSegment } from './transcript.ts'

export type RecordingState =
  | 'idle'
  | 'starting'
  | 'recording'
  | 'paused'
  | 'reconnecting'
  | 'finishing'

type Gap = { readonly start: number; readonly end: number }

/** What became of the audio, in milliseconds. */
export type Ledger = Progress & {
  readonly silenceMs: number
  readonly untranscribedMs: number
  readonly gaps: readonly Gap[]
  readonly sessions: number
}

const noProgress: Ledger = {
  capturedMs: 0,
  receivedMs: 0,
  processedMs: 0,
  finalMs: 0,
  lostMs: 0,
  silenceMs: 0,
  untranscribedMs: 0,
  gaps: [],
  sessions: 0,
}

export const state = signal<RecordingState>('idle')
/** Why the last recording did not begin or ended by itself. */
export const fault = signal<MicrophoneError | { code: string; message?: string } | null>(null)
export const segments = signal<readonly Segment[]>([])
export const ledger = signal<Ledger>(noProgress)
export const levelDbfs = signal(quietDbfs)
export const engine = signal<SessionReady['engine'] | null>(null)
/** Of the gateway: the engine lags, was replaced, or lost audio. */
export const warnings = signal<readonly { code: string; message: string }[]>([])
/** Counts measured texts, so that the page reads the summary again. */
export const measurements = signal(0)
export let latency = createLatency()

const warningsMax = 5
let microphone: Microphone | null = null
let session: LiveSession | null = null

export type RecordingChoice = {
  readonly deviceId: string | null
  readonly language: string
  readonly engineName: string | null
}

export async function startRecording(choice: RecordingChoice): Promise<void> {
  if (state.value !== 'idle') return
  clearTranscript()
  state.value = 'starting'
  fault.value = null
  try {
    microphone = await openMicrophone({
      deviceId: choice.deviceId,
      onSamples,
      onLost: () => {
        fault.value = new MicrophoneError('missing')
        void stopRecording()
      },
    })
    const { sampleRateHz } = microphone
    session = openLiveSession({
      url: () => addressOf(choice, sampleRateHz),
      sampleRateHz,
      listener,
    })
  } catch (error) {
    fault.value =
      error instanceof MicrophoneError ? error : new MicrophoneError('busy', { cause: error })
    void release()
  }
}

export function pauseRecording(): void {
  if (state.value !== 'recording') return
  state.value = 'paused'
  void microphone?.pause().then(() => {
    if (state.value !== 'paused') return
    levelDbfs.value = quietDbfs
    session?.pause()
  })
}

export function resumeRecording(): void {
  if (state.value !== 'paused') return
  state.value = 'recording'
  microphone?.resume()
  session?.resume()
}

/** The last words follow; a second call does not wait for them. */
export async function stopRecording(): Promise<void> {
  if (state.value === 'idle') return
  if (state.value === 'finishing' || session === null) return leaveRecording()
  state.value = 'finishing'
  await closeMicrophone()
  levelDbfs.value = quietDbfs
  session?.end()
}

/** Ends it without waiting, as when the page is left. */
export function leaveRecording(): void {
  session?.abort()
  void release()
}

export function clearTranscript(): void {
  segments.value = []
  ledger.value = noProgress
  warnings.value = []
  latency = createLatency()
  measurements.value = 0
}

function onSamples(samples: Int16Array): void {
  if (session === null) return
  levelDbfs.value = levelOf(samples)
  session.send(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength))
  latency.captured(session.capturedMs(), performance.now())
}

async function closeMicrophone(): Promise<void> {
  const opened = microphone
  microphone = null
  await opened?.close().catch(() => {})
}

async function release(): Promise<void> {
  session = null
  state.value = 'idle'
  levelDbfs.value = quietDbfs
  await closeMicrophone()
}

const listener: Parameters<typeof openLiveSession>[0]['listener'] = {
  ready(frame) {
    engine.value = frame.engine
    if (state.value === 'starting' || state.value === 'reconnecting') state.value = 'recording'
  },
  reconnecting() {
    if (state.value === 'recording' || state.value === 'starting') state.value = 'reconnecting'
  },
  restarted() {
    segments.value = segments.value.filter(({ stableText }) => stableText === null)
  },
  transcript(frame, id) {
    latency.shown(frame.is_final ? 'final' : 'partial', frame.end * 1000, performance.now())
    measurements.value += 1
    segments.value = withSegment(segments.value, {
      id,
      start: frame.start,
      end: frame.end,
      text: frame.text,
      stableText: frame.is_final ? null : frame.stable_text,
      words: frame.is_final ? (frame.words ?? []) : [],
    })
  },
  warning({ code, message }) {
    warnings.value = [...warnings.value, { code, message }].slice(-warningsMax)
  },
  progress(progress) {
    ledger.value = { ...ledger.value, ...progress }
  },
  stats(stats, startMs) {
    ledger.value = withStats(ledger.value, stats, startMs)
  },
  ended(failure) {
    if (failure !== null) fault.value = failure
    if (failure?.code === 'unauthorized') credential.expired()
    keepOpenTexts()
    void release()
  },
}

/** No final text follows, so what was understood so far stays. */
function keepOpenTexts(): void {
  segments.value = segments.value.map((segment) => ({ ...segment, stableText: null }))
}

function withStats(before: Ledger, stats: SessionStats, startMs: number): Ledger {
  const shift = startMs / 1000
  return {
    ...before,
    silenceMs: before.silenceMs + stats.silence_ms,
    untranscribedMs: before.untranscribedMs + stats.untranscribed_ms,
    gaps: [
      ...before.gaps,
      ...stats.gaps.map(({ start, end }) => ({ start: start + shift, end: end + shift })),
    ],
    sessions: before.sessions + 1,
  }
}

function addressOf({ language, engineName }: RecordingChoice, sampleRateHz: number): string {
  const url = new URL('/v1/stt', location.href)
  url.protocol = url.protocol.replace('http', 'ws')
  url.searchParams.set('lang', language)
  url.searchParams.set('encoding', 'pcm_int16')
  url.searchParams.set('sample_rate_hz', String(sampleRateHz))
  if (engineName !== null) url.searchParams.set('engine', engineName)
  const token = credential.token()
  if (token !== null) url.searchParams.set('token', token)
  return url.href
}
