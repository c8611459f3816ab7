import { afterEach, expect, test } from 'bun:test'
import { programEnvironment } from '#config/load.ts'
import type { EngineConfig } from '#config/schema.ts'
import type { EngineEvent } from '#speech/engine.ts'
import { changedEngines, createEnginePool, type EnginePool } from '#speech/engines/pool.ts'
import { engineConfig, engineDeps, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { childrenOf } from '#test/support/process.ts'
import { type StubScript, stubCommand } from '#test/support/stub-program/script.ts'

/** Engines of a reloaded configuration. */

const pools: EnginePool[] = []
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()))
})

const deps = { log: engineDeps().log, environment: programEnvironment() }
const demo = (given: Partial<EngineConfig>) => engineConfig({ kind: 'demo', ...given })
const stub = (script: Partial<StubScript>, given: Partial<EngineConfig> = {}) =>
  engineConfig({ kind: 'exec', name: 'stub', command: stubCommand(script), warm: 0, ...given })

function start(configs: EngineConfig[]) {
  const pool = createEnginePool(configs, deps)
  pools.push(pool)
  let before = configs
  return {
    pool,
    change(next: EngineConfig[]) {
      pool.replace(changedEngines(pool, { before, next }, deps))
      before = next
    },
  }
}

async function open(pool: EnginePool, engineName: string | null = null) {
  const events: EngineEvent[] = []
  const opened = await pool.open(
    { language: 'en', engineName, avoid: null },
    {
      language: 'en',
      vocabulary: [],
      endpointingMs: 600,
      signal: new AbortController().signal,
      listener: (event) => void events.push(event),
    },
  )
  return { ...opened, events }
}

test('an engine that stays is the same, with its sessions; its place may change', async () => {
  const [a, b] = [demo({ name: 'a', sessionsMax: 1 }), demo({ name: 'b' })]
  const { pool, change } = start([a, b])
  const [first] = pool.engines
  expect((await open(pool)).engine.name).toBe('a')
  change([b, structuredClone(a), demo({ name: 'c' })])
  expect(pool.engines.map(({ name }) => name)).toEqual(['b', 'a', 'c'])
  expect(pool.engines[1]).toBe(first)
  expect(pool.hasCapacity({ language: 'en', engineName: 'a', avoid: null })).toBe(false)
})

test('the sessions of a removed engine end as they began, then its programs are stopped', async () => {
  const running = childrenOf(process.pid).length
  const { pool, change } = start([stub({}, { warm: 1 })])
  const { session, events } = await open(pool)
  await eventually('a warm one runs too', () => childrenOf(process.pid).length === running + 2)
  change([demo({ name: 'next' })])
  expect((await open(pool)).engine.name).toBe('next')
  session.write(tone(500, 16_000))
  session.end()
  await eventually('its last results have arrived', () => events.at(-1)?.type === 'ended')
  expect(events.map(({ type }) => type)).toContain('final')
  await eventually('its programs have ended', () => childrenOf(process.pid).length === running)
})

test('a removed engine without sessions stops its warm programs at once', async () => {
  const running = childrenOf(process.pid).length
  const { change } = start([stub({}, { warm: 2 })])
  await eventually('they run', () => childrenOf(process.pid).length === running + 2)
  change([])
  await eventually('they have ended', () => childrenOf(process.pid).length === running)
})

test('a changed engine is a new one of the same name; failures are counted on', async () => {
  const { pool, change } = start([stub({ breaksAtMs: 0 }, { sessionsMax: 1 })])
  const { session, events } = await open(pool)
  session.write(tone(100, 16_000))
  await eventually('the session has ended', () => events.at(-1)?.type === 'failed')
  const [{ failuresTotal } = { failuresTotal: 0 }] = pool.states()
  expect(failuresTotal).toBe(1)
  change([stub({}, { sessionsMax: 3 })])
  expect(pool.states()).toMatchObject([
    { name: 'stub', sessions: 0, sessionsMax: 3, failuresTotal: 1, isInBackoff: false },
  ])
})

test('without engines, the built-in ones take over, and their languages', () => {
  const { pool, change } = start([demo({ name: 'greek', languages: ['el'] })])
  expect(pool.languages).toEqual(['el'])
  change([])
  expect(pool.engines.map(({ name }) => name)).toEqual(['local-speech', 'demo (no words)'])
  expect(pool.languages).toContain('en')
})
