import { expect } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import type { Recognition } from '#speech/recognition/live-recognition.ts'
import { openRecognition } from '#speech/recognition/open-recognition.ts'
import type {
  RecognitionEvent,
  RecognitionOptions,
  RecognitionStats,
  Transcript,
} from '#speech/recognition/recognition.ts'
import { engineDeps } from './engine-session.ts'
import { eventually } from './eventually.ts'
import type { ScriptedEngine } from './scripted-engine.ts'
import { checkTranscripts } from './transcript-rules.ts'

/** A recognition with all of its events. */
export type RecognitionRecorder = {
  readonly recognition: Recognition
  readonly events: readonly RecognitionEvent[]
  of<T extends RecognitionEvent['type']>(type: T): Extract<RecognitionEvent, { type: T }>[]
  finals(): Transcript[]
  /** The words of all finals. */
  words(): string[]
  /** The codes of the warnings. */
  warnings(): string[]
  /** Writes as fast as accepted, in pieces of `pieceOf()` samples. */
  write(samples: Int16Array, pieceOf?: () => number): Promise<void>
  /** Ends it and resolves with the ending. */
  end(): Promise<Ending>
  ending(): Promise<Ending>
}

type Ending = Extract<RecognitionEvent, { type: 'ended' | 'failed' }>

export type RecognitionRequest = {
  readonly engines: readonly ScriptedEngine[]
  readonly settings?: Partial<Config['speech']>
  readonly options?: Partial<RecognitionOptions>
}

const { speech: defaultSettings } = loadConfig({ SLUICE_STT_ENGINE: 'demo' })
const endings = ['ended', 'failed']

export async function recordEngines(request: RecognitionRequest): Promise<RecognitionRecorder> {
  const recorder = await recordPool(new EnginePool(request.engines, engineDeps().log), request)
  return recorder
}

export async function recordPool(
  pool: EnginePool,
  { settings, options }: Omit<RecognitionRequest, 'engines'>,
): Promise<RecognitionRecorder> {
  const events: RecognitionEvent[] = []
  const recognition = await openRecognition(
    { pool, settings: { ...defaultSettings, ...settings }, log: engineDeps().log },
    {
      language: 'en',
      engineName: null,
      partials: true,
      words: true,
      partialsPerSecondMax: 1e9,
      endpointingMs: 300,
      vocabulary: [],
      live: false,
      signal: new AbortController().signal,
      listener: (event) => events.push(event),
      ...options,
    },
  )
  const of: RecognitionRecorder['of'] = (type) => events.filter((event) => isOf(event, type))
  const finals = () => of('transcript').filter(({ isFinal }) => isFinal)
  const isOver = () => events.some(({ type }) => endings.includes(type))
  const ending = async () => {
    await eventually(`an ending, after ${JSON.stringify(events.slice(-3))}`, isOver)
    checkEvents(events)
    return events.at(-1) as Ending
  }
  return {
    recognition,
    events,
    of,
    finals,
    words: () => finals().flatMap(({ text }) => text.split(' ')),
    warnings: () => of('warning').map(({ code }) => code),
    async write(samples, pieceOf = () => 1_600) {
      for (let from = 0; from < samples.length && !isOver(); ) {
        await eventually('audio is writable', () => recognition.writableMs() > 0 || isOver())
        const piece = samples.subarray(from, from + pieceOf())
        recognition.write(piece)
        from += piece.length
      }
    },
    end() {
      recognition.end()
      return ending()
    },
    ending,
  }
}

function isOf<T extends RecognitionEvent['type']>(
  event: RecognitionEvent,
  type: T,
): event is Extract<RecognitionEvent, { type: T }> {
  return event.type === type
}

/** Checks the invariants of all recognition events; the last one is an ending. */
function checkEvents(events: readonly RecognitionEvent[]): void {
  expect(events.filter(({ type }) => endings.includes(type))).toHaveLength(1)
  expect(endings.includes(events.at(-1)?.type ?? '')).toBe(true)
  checkTranscripts(events.filter((event) => isOf(event, 'transcript')))
  const ending = events.at(-1)
  if (ending?.type === 'ended' || ending?.type === 'failed') checkStats(ending.stats)
}

function checkStats(stats: RecognitionStats): void {
  const gapsMs = stats.gaps.reduce((sum, gap) => sum + gap.endMs - gap.startMs, 0)
  expect(gapsMs).toBe(stats.untranscribedMs)
  expect(stats.silenceMs + stats.untranscribedMs).toBeLessThanOrEqual(stats.receivedMs)
  expect(stats.processedMs).toBeLessThanOrEqual(stats.receivedMs)
  expect(stats.finalMs).toBeLessThanOrEqual(stats.receivedMs)
}
