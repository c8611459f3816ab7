import type { EngineConfig } from '#config/schema.ts'
import type { EngineEvent, EngineOpenOptions, EngineSession } from '#speech/engine.ts'
import { VoiceActivity, type VoiceSpan } from '#speech/voice-activity.ts'
import { describeEngine, type EngineKind, openAborted } from './engine-kind.ts'
import { findInstalled } from './local/installed.ts'
import { installCommand } from './local/package.ts'

/** Audio between two partials of one utterance. */
const partialIntervalMs = 200

/** The engine that is used if none is configured. */
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
  threads: 0,
  paceMax: 1,
  loadMax: 1,
}

/**
 * Recognises no words: reports when there was speech, how long and how loud, so that a client and
 * its audio can be tested before an engine is available.
 */
export const demo: EngineKind = {
  location: 'none',
  create(config, { folders }) {
    const engine = describeEngine(config)
    return {
      ...engine,
      notice: `This engine recognises no words. The operator installs one that does with: ${installCommand}`,
      features: { partials: true, words: false, confidence: false, finalize: true },
      available(language) {
        if (config !== builtInEngine) return true
        // A local model that is installed serves all sessions.
        const { runtime, model } = findInstalled({}, folders)
        return runtime === null || model?.languages.includes(language) !== true
      },
      async open({ signal, listener }) {
        if (signal.aborted) throw openAborted()
        return createDemoSession(engine.sampleRateHz, listener)
      },
      close: async () => {},
    }
  },
}

function createDemoSession(
  sampleRateHz: number,
  listener: EngineOpenOptions['listener'],
): EngineSession {
  const activity = new VoiceActivity(sampleRateHz)
  let samplesSeen = 0
  let partialMs = 0
  let hasEnd = false
  let isAborted = false

  /** Emits in order, and never inside the call that caused the event. */
  function emit(event: EngineEvent) {
    queueMicrotask(() => {
      if (!isAborted) listener(event)
    })
  }

  function cut(speechFinal: boolean) {
    const span = activity.divide()
    if (span !== null) emit(finalOf(span, speechFinal))
  }

  function emitPartial() {
    const span = activity.current()
    if (span === null || span.endMs - partialMs < partialIntervalMs) return
    partialMs = span.endMs
    emit({ type: 'partial', ...describe(span) })
  }

  return {
    write(samples) {
      if (hasEnd) return
      for (const change of activity.push(samples)) {
        if (change.speaking) emit({ type: 'speech-start', atMs: change.atMs })
        else emit(finalOf(change, true))
        partialMs = change.atMs
      }
      emitPartial()
      samplesSeen += samples.length
      const processedMs = Math.floor((samplesSeen * 1000) / sampleRateHz)
      emit({ type: 'progress', processedMs, estimated: false })
    },
    finalize() {
      cut(false)
      emit({ type: 'finalized' })
    },
    end() {
      if (hasEnd) return
      hasEnd = true
      cut(true)
      emit({ type: 'ended' })
    },
    abort() {
      hasEnd = true
      isAborted = true
    },
  }
}

function finalOf(span: VoiceSpan, speechFinal: boolean): EngineEvent {
  return { type: 'final', ...describe(span), words: [], confidence: null, speechFinal }
}

function describe({ startMs, endMs, levelDbfs }: VoiceSpan) {
  const seconds = ((endMs - startMs) / 1000).toFixed(2)
  return { text: `[speech ${seconds} s, level ${Math.round(levelDbfs)} dBFS]`, startMs, endMs }
}
