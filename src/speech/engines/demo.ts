import type { EngineConfig } from '#config/schema.ts'
import {
  type Engine,
  EngineError,
  type EngineEvent,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import { createVoiceActivity, type VoiceStretch } from '#speech/voice-activity.ts'
import { servedLanguages } from './served-languages.ts'

const defaultSampleRateHz = 16_000
/** Between two partials of one stretch of speech, in audio. */
const partialEveryMs = 200

/** What answers where no engine is configured; its name says what it cannot. */
export const builtInEngine: EngineConfig = {
  name: 'demo (no words)',
  kind: 'demo',
  command: [],
  languages: [],
  dialect: 'ga',
  framed: false,
  sessionsMax: 10_000,
  sessionMsMax: 86_400_000,
  warm: 0,
  openMs: 10_000,
  paceMax: 1,
}

/**
 * Recognises no words: it reports when somebody spoke, how long and how loud, as heard in the very
 * audio that arrived. So a client can be tried, and its audio judged, before there is an engine.
 */
export function createDemoEngine(config: EngineConfig): Engine {
  const { name, sessionsMax, sessionMsMax } = config
  const sampleRateHz = config.sampleRateHz ?? defaultSampleRateHz
  return {
    name,
    languages: servedLanguages(config),
    sampleRateHz,
    features: { partials: true, words: false, confidence: false, finalize: true },
    limits: { sessionsMax, sessionMsMax },
    async open({ signal, listener }) {
      if (signal.aborted) throw new EngineError('unreachable', 'nobody waits for it any more')
      return createDemoSession(sampleRateHz, listener)
    },
    close: async () => {},
  }
}

function createDemoSession(
  sampleRateHz: number,
  listener: EngineOpenOptions['listener'],
): EngineSession {
  const activity = createVoiceActivity(sampleRateHz)
  const told = createMailbox(listener)
  let samplesSeen = 0
  let partialMs = 0
  let hasEnd = false

  function cut(speechFinal: boolean) {
    const stretch = activity.cut()
    if (stretch !== null) told.post(finalOf(stretch, speechFinal))
  }

  function postPartial() {
    const stretch = activity.current()
    if (stretch === null || stretch.endMs - partialMs < partialEveryMs) return
    partialMs = stretch.endMs
    told.post({ type: 'partial', ...spanOf(stretch) })
  }

  return {
    write(samples) {
      if (hasEnd) return
      for (const change of activity.push(samples)) {
        if (change.speaking) told.post({ type: 'speech-start', atMs: change.atMs })
        else told.post(finalOf(change, true))
        partialMs = change.atMs
      }
      postPartial()
      samplesSeen += samples.length
      const processedMs = Math.floor((samplesSeen * 1000) / sampleRateHz)
      told.post({ type: 'progress', processedMs, estimated: false })
    },
    finalize() {
      cut(false)
      told.post({ type: 'finalized' })
    },
    end() {
      if (hasEnd) return
      hasEnd = true
      cut(true)
      told.post({ type: 'ended' })
    },
    abort() {
      hasEnd = true
      told.close()
    },
  }
}

/** Tells in order, and never while the listener is still in the call that led to it. */
function createMailbox(listener: (event: EngineEvent) => void) {
  let isClosed = false
  return {
    post(event: EngineEvent) {
      queueMicrotask(() => {
        if (!isClosed) listener(event)
      })
    },
    close() {
      isClosed = true
    },
  }
}

function finalOf(stretch: VoiceStretch, speechFinal: boolean): EngineEvent {
  return { type: 'final', ...spanOf(stretch), words: [], confidence: null, speechFinal }
}

function spanOf({ startMs, endMs, levelDbfs }: VoiceStretch) {
  const seconds = ((endMs - startMs) / 1000).toFixed(2)
  return { text: `[speech ${seconds} s, level ${Math.round(levelDbfs)} dBFS]`, startMs, endMs }
}
