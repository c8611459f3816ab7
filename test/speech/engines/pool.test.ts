import { afterEach, describe, expect, test } from 'bun:test'
import { programEnvironment } from '#config/load.ts'
import type { EngineConfig } from '#config/schema.ts'
import type { EngineEvent } from '#speech/engine.ts'
import { createEnginePool, type EngineChoice, type EnginePool } from '#speech/engines/pool.ts'
import { engineConfig, engineDeps, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { type StubScript, stubCommand } from '#test/support/stub-program/script.ts'

const anyEnglish: EngineChoice = { language: 'en', engineName: null, avoid: null }
const pools: EnginePool[] = []

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()))
})

test('without configured engines the built-in demo is used, and its name says so', async () => {
  const pool = openPool([])
  expect(pool.engines.map(({ name }) => name)).toEqual(['local-speech', 'demo (no words)'])
  expect(pool.languages).toEqual(['cs', 'de', 'el', 'en', 'fr', 'sk'])
  const { engine, events, session } = await open(pool)
  expect(engine.name).toBe('demo (no words)')
  session.write(tone(500, engine.sampleRateHz))
  session.end()
  await eventually('the session ended', () => events.at(-1)?.type === 'ended')
  expect(events.find(({ type }) => type === 'final')).toMatchObject({ startMs: 0, endMs: 500 })
})

test('the first engine that serves the language is chosen, or the named one', async () => {
  const pool = openPool([
    demo({ name: 'greek', languages: ['el'] }),
    demo({ name: 'first', languages: ['en', 'de'] }),
    demo({ name: 'second', languages: ['en'] }),
  ])
  expect(pool.languages).toEqual(['de', 'el', 'en'])
  expect((await open(pool)).engine.name).toBe('first')
  expect((await open(pool, { engineName: 'second' })).engine.name).toBe('second')
  expect((await open(pool, { language: 'el' })).engine.name).toBe('greek')
  expect((await open(pool, { avoid: 'first' })).engine.name).toBe('second')
  expect((await open(pool, { avoid: 'first', language: 'de' })).engine.name).toBe('first')
})

test('a language that no engine serves is refused', async () => {
  const pool = openPool([demo({ name: 'greek', languages: ['el'] })])
  expect(pool.hasCapacity(anyEnglish)).toBe(false)
  await expectRefusal(open(pool), 'refused')
  await expectRefusal(open(pool, { language: 'el', engineName: 'latin' }), 'refused')
})

test('when an engine is at capacity the next one is used; when all are, the pool is busy', async () => {
  const pool = openPool([demo({ name: 'a', sessionsMax: 1 }), demo({ name: 'b', sessionsMax: 1 })])
  expect((await open(pool)).engine.name).toBe('a')
  expect(pool.hasCapacity({ ...anyEnglish, engineName: 'a' })).toBe(false)
  expect(pool.hasCapacity(anyEnglish)).toBe(true)
  expect((await open(pool)).engine.name).toBe('b')
  expect(pool.hasCapacity(anyEnglish)).toBe(false)
  await expectRefusal(open(pool), 'busy')
})

describe('capacity is released once', () => {
  test('when a session has ended, even if aborted afterwards', async () => {
    const pool = openPool([demo({ name: 'a', sessionsMax: 2 })])
    const kept = await open(pool)
    const { session, events } = await open(pool)
    session.end()
    await eventually('the session ended', () => events.at(-1)?.type === 'ended')
    session.abort()
    session.abort()
    await open(pool)
    expect(pool.hasCapacity(anyEnglish)).toBe(false)
    kept.session.abort()
    expect(pool.hasCapacity(anyEnglish)).toBe(true)
  })

  test('when a session is aborted, twice', async () => {
    const pool = openPool([demo({ name: 'a', sessionsMax: 1 })])
    for (let times = 0; times < 5; times += 1) {
      const { session } = await open(pool)
      expect(pool.hasCapacity(anyEnglish)).toBe(false)
      session.abort()
      session.abort()
    }
    await open(pool)
    await expectRefusal(open(pool), 'busy')
  })

  test('when a session fails, before its listener is called', async () => {
    const pool = openPool([stub({ breaksAtMs: 0 }, { sessionsMax: 1 })])
    const capacities: boolean[] = []
    const { session } = await pool.open(anyEnglish, {
      ...openOptions(),
      listener: ({ type }) => {
        if (type === 'failed') capacities.push(pool.hasCapacity(anyEnglish))
      },
    })
    session.write(tone(100, 16_000))
    await eventually('the session failed', () => capacities.length > 0)
    expect(capacities).toEqual([true])
    session.abort()
    const next = await open(pool)
    expect(pool.hasCapacity(anyEnglish)).toBe(false)
    next.session.abort()
  })

  test('when opening fails or is cancelled', async () => {
    const pool = openPool([stub({ atStart: 'silence' }, { sessionsMax: 1 })])
    for (let times = 0; times < 3; times += 1) {
      const controller = new AbortController()
      const opening = pool.open(anyEnglish, { ...openOptions(), signal: controller.signal })
      expect(pool.hasCapacity(anyEnglish)).toBe(false)
      controller.abort()
      await expectRefusal(opening, 'unreachable')
      expect(pool.hasCapacity(anyEnglish)).toBe(true)
    }
    const broken = openPool([stub({ atStart: 'exit' }, { sessionsMax: 1 })])
    await expectRefusal(open(broken), 'unreachable')
    expect(broken.hasCapacity(anyEnglish)).toBe(true)
  })
})

test('when an engine fails to open, the next one is used and the failed one backs off', async () => {
  const { log, lines } = engineDeps()
  const pool = openPool([stub({ atStart: 'exit' }), demo({ name: 'other' })], log)
  for (let times = 0; times < 3; times += 1) expect((await open(pool)).engine.name).toBe('other')
  const warnings = lines.filter((line) => line.includes('using it last'))
  expect(warnings).toHaveLength(1)
  expect(JSON.parse(warnings[0] ?? '')).toMatchObject({ engine: 'stub', kind: 'unreachable' })
})

test('an engine that fails in a session backs off and is preferred again afterwards', async () => {
  const pool = openPool([stub({ breaksAtMs: 0 }), demo({ name: 'other' })])
  const { engine, session, events } = await open(pool)
  expect(engine.name).toBe('stub')
  session.write(tone(100, 16_000))
  await eventually('the session failed', () => events.at(-1)?.type === 'failed')
  expect((await open(pool)).engine.name).toBe('other')
  await eventually('the engine is preferred again', async () => {
    const opened = await open(pool)
    opened.session.abort()
    return opened.engine.name === 'stub'
  })
})

test('an engine in backoff is used if there is no other, and its error is returned', async () => {
  const pool = openPool([stub({ atStart: 'refuse' })])
  await expectRefusal(open(pool), 'refused')
  await expectRefusal(open(pool), 'refused')
})

test('an engine that reaches its session limit has not failed', async () => {
  const { log, lines } = engineDeps()
  const pool = openPool([stub({ breaksAtMs: 0, breaksBy: 'limit' })], log)
  const { session, events } = await open(pool)
  session.write(tone(100, 16_000))
  await eventually('the session has ended', () => events.at(-1)?.type === 'failed')
  expect(lines.filter((line) => line.includes('using it last'))).toEqual([])
})

function openPool(configs: EngineConfig[], log = engineDeps().log): EnginePool {
  const pool = createEnginePool(configs, { log, environment: programEnvironment() })
  pools.push(pool)
  return pool
}

async function open(pool: EnginePool, choice: Partial<EngineChoice> = {}) {
  const events: EngineEvent[] = []
  const listener = (event: EngineEvent) => void events.push(event)
  const opened = await pool.open({ ...anyEnglish, ...choice }, { ...openOptions(), listener })
  return { ...opened, events }
}

function openOptions() {
  return {
    language: 'en' as const,
    vocabulary: [],
    endpointingMs: 600,
    signal: new AbortController().signal,
    listener: () => {},
  }
}

async function expectRefusal(opening: Promise<unknown>, kind: string): Promise<void> {
  const error = await opening.then(
    () => null,
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ name: 'EngineError', kind })
}

function demo(given: Partial<EngineConfig>): EngineConfig {
  return engineConfig({ kind: 'demo', ...given })
}

function stub(script: Partial<StubScript>, given: Partial<EngineConfig> = {}): EngineConfig {
  return engineConfig({ kind: 'exec', name: 'stub', command: stubCommand(script), ...given })
}
