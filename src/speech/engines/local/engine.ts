import { availableParallelism } from 'node:os'
import type { EngineConfig } from '#config/schema.ts'
import { type Engine, EngineError, type Word } from '#speech/engine.ts'
import { describeEngine, type EngineKind, openAborted } from '#speech/engines/engine-kind.ts'
import { type Recognised, SegmentSession } from '#speech/engines/segments/segment-session.ts'
import { findInstalled } from './installed.ts'
import { installCommand } from './package.ts'
import { Recogniser } from './recogniser.ts'
import { type ChildResult, localRateHz } from './wire.ts'

/** Longer than a sentence; Whisper itself processes at most 30 s. */
const segmentMsMax = 20_000
const partialMs = 700
export const loadMs = 60_000
const idleMs = 600_000

/** The engine that is used first if none is configured. */
export const builtInLocal: EngineConfig = {
  name: 'local-speech',
  kind: 'local',
  command: [],
  languages: [],
  dialect: 'ga',
  framed: false,
  sessionsMax: 64,
  sessionMsMax: 480_000,
  warm: 0,
  openMs: 10_000,
  threads: 0,
  paceMax: 1,
  loadMax: 0.8,
}

/** A model on this machine, in one process for all sessions. */
export const local: EngineKind = {
  location: 'none',
  create(config, deps) {
    let recogniser: { readonly key: string; readonly value: Recogniser } | null = null

    /** The recogniser of the model that is installed now. */
    function current(): Recogniser {
      const { runtime, model } = findInstalled(config, deps.folders)
      if (runtime === null || model === null) {
        throw new EngineError('unreachable', missingPart(runtime, config.model))
      }
      const key = JSON.stringify(model)
      if (recogniser?.key === key) return recogniser.value
      void recogniser?.value.close()
      const threads = config.threads || Math.max(1, Math.floor(availableParallelism() / 2))
      const { name, loadMax } = config
      const options = { name, runtime, model, threads, loadMax, loadMs, idleMs, deps }
      recogniser = { key, value: new Recogniser(options) }
      return recogniser.value
    }

    return {
      ...describeEngine(config, localRateHz),
      sampleRateHz: localRateHz,
      features: { partials: true, words: true, confidence: false, finalize: true },
      available(language) {
        // A configured engine that is not installed fails visibly.
        if (config !== builtInLocal) return true
        const { runtime, model } = findInstalled(config, deps.folders)
        return runtime !== null && model?.languages.includes(language) === true
      },
      // Before the model is loaded nothing is known of it.
      hasCapacity: () => recogniser?.value.hasCapacity() !== false,
      async open(options) {
        const { signal } = options
        if (signal.aborted) throw openAborted()
        const model = current()
        await model.load()
        if (signal.aborted) throw openAborted()
        const release = model.takeCapacity()
        const session = new SegmentSession(
          async (request) => {
            const result = await model.recognise(request)
            const lengthMs = (request.samples.length * 1000) / localRateHz
            return result === null ? null : withWords(result, lengthMs)
          },
          { sampleRateHz: localRateHz, segmentMsMax, partialMs, hasWordTimes: () => true },
          {
            ...options,
            listener(event) {
              if (event.type === 'ended' || event.type === 'failed') release()
              options.listener(event)
            },
          },
        )
        return {
          write: (samples) => session.write(samples),
          finalize: () => session.finalize(),
          end: () => session.end(),
          abort() {
            release()
            session.abort()
          },
        }
      },
      close: async () => recogniser?.value.close(),
    } satisfies Engine
  },
}

/** What to do about a runtime or a model that is not installed. */
function missingPart(runtime: string | null, wanted: string | undefined): string {
  if (runtime !== null && wanted?.startsWith('/') === true) {
    return `${wanted} is no folder with an encoder, a decoder and tokens`
  }
  const missing = runtime === null ? 'runtime' : 'model'
  const named = wanted === undefined || wanted.startsWith('/') ? '' : ` ${wanted}`
  return `its ${missing} is not installed; install it with: ${installCommand}${named}`
}

/** Joins tokens to words. Without times, words share the length of the audio by their letters. */
function withWords({ text, tokens, starts, durations }: ChildResult, lengthMs: number): Recognised {
  const texts = text.split(/\s+/).filter((word) => word !== '')
  const groups: { startMs: number; endMs: number }[] = []
  if (starts.length === tokens.length) {
    for (const [at, token] of tokens.entries()) {
      const startMs = (starts[at] ?? 0) * 1000
      const endMs = startMs + (durations[at] ?? 0) * 1000
      const last = groups.at(-1)
      if (last === undefined || /^\s/.test(token)) groups.push({ startMs, endMs })
      // Punctuation lasts until the next word.
      else if (!/^\p{P}+$/u.test(token)) last.endMs = endMs
    }
  }
  const times = groups.length === texts.length ? groups : spread(texts, lengthMs)
  const words: readonly Word[] = texts.map((word, at) => ({
    word,
    startMs: times[at]?.startMs ?? 0,
    endMs: Math.max(times[at]?.startMs ?? 0, times[at]?.endMs ?? lengthMs),
    confidence: null,
  }))
  return { text, words, confidence: null }
}

function spread(texts: readonly string[], lengthMs: number) {
  const letters = texts.reduce((sum, { length }) => sum + length, 0)
  let before = 0
  return texts.map(({ length }) => {
    const startMs = (before / letters) * lengthMs
    before += length
    return { startMs, endMs: (before / letters) * lengthMs }
  })
}
