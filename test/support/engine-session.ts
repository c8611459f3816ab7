import type { EngineConfig } from '#config/schema.ts'
import type { Engine, EngineEvent, EngineOpenOptions, EngineSession } from '#speech/engine.ts'
import type { EngineDeps } from '#speech/engines/engine-kind.ts'
import { createLog } from '#telemetry/log.ts'
import { eventually } from './eventually.ts'

/** An engine session with all of its events but signs of life. */
export type SessionRecorder = {
  readonly session: EngineSession
  readonly events: readonly EngineEvent[]
  of<T extends EngineEvent['type']>(type: T): Extract<EngineEvent, { type: T }>[]
  /** Resolves after `count` events of the type; throws if the session fails first. */
  waitFor(type: EngineEvent['type'], count?: number): Promise<void>
  /** The texts of the finals. */
  finals(): string[]
}

/** An engine configuration with test defaults. */
export function engineConfig(overrides: Partial<EngineConfig> & Pick<EngineConfig, 'kind'>) {
  const config: EngineConfig = {
    name: 'engine',
    command: [],
    languages: [],
    dialect: 'ga',
    framed: false,
    sessionsMax: 8,
    sessionMsMax: 480_000,
    warm: 0,
    openMs: 5_000,
    threads: 1,
    paceMax: 1_000,
    loadMax: 1_000,
    ...overrides,
  }
  return config
}

/** Engine dependencies; `lines` are the logged lines. */
export function engineDeps(): EngineDeps & { readonly lines: readonly string[] } {
  const lines: string[] = []
  const log = createLog({
    level: 'debug',
    format: 'json',
    write: (line) => void lines.push(line),
    now: () => new Date(0),
  })
  return { log, environment: {}, fetch, lines }
}

export async function openSession(
  engine: Engine,
  options: Partial<EngineOpenOptions> = {},
): Promise<SessionRecorder> {
  const events: EngineEvent[] = []
  const session = await engine.open({
    language: 'en',
    vocabulary: [],
    endpointingMs: 600,
    signal: new AbortController().signal,
    listener: (event) => {
      if (event.type === 'alive') return
      checkEvent(event, events)
      events.push(event)
    },
    ...options,
  })
  const of: SessionRecorder['of'] = (type) => events.filter((event) => isOf(event, type))
  return {
    session,
    events,
    of,
    async waitFor(type, count = 1) {
      await eventually(`${count} of ${type}, after ${JSON.stringify(events.slice(-3))}`, () => {
        const failure = of('failed')[0]
        if (failure !== undefined && type !== 'failed') throw failure.error
        return of(type).length >= count
      })
    },
    finals: () => of('final').map(({ text }) => text),
  }
}

/** Samples of a tone. */
export function tone(ms: number, sampleRateHz: number, amplitude = 8_000): Int16Array {
  const samples = new Int16Array(Math.round((ms * sampleRateHz) / 1000))
  return samples.map((_, at) =>
    Math.round(amplitude * Math.sin((at * 2 * Math.PI * 440) / sampleRateHz)),
  )
}

export function silence(ms: number, sampleRateHz: number): Int16Array {
  return tone(ms, sampleRateHz, 0)
}

function isOf<T extends EngineEvent['type']>(
  event: EngineEvent,
  type: T,
): event is Extract<EngineEvent, { type: T }> {
  return event.type === type
}

const endings = ['ended', 'failed']

/** Checks the invariants of engine events. */
function checkEvent(event: EngineEvent, before: readonly EngineEvent[]): void {
  const violation = violationIn(event, before)
  if (violation === null) return
  // Thrown outside the listener, so that it fails the test instead of reaching the adapter.
  queueMicrotask(() => {
    throw new Error(`${violation}: ${JSON.stringify(event)}`)
  })
}

function violationIn(event: EngineEvent, before: readonly EngineEvent[]): string | null {
  if (before.some(({ type }) => endings.includes(type))) return 'an event after the ending'
  if ((event.type === 'partial' || event.type === 'final') && event.text.trim() === '') {
    return 'an empty text'
  }
  if (event.type === 'final' && event.startMs !== null && event.endMs !== null) {
    if (event.startMs > event.endMs) return 'a final that ends before it begins'
  }
  if (event.type !== 'progress') return null
  const last = before.findLast((earlier) => earlier.type === 'progress')
  return (last?.processedMs ?? 0) > event.processedMs ? 'progress runs backwards' : null
}
