import { expect, test } from 'bun:test'
import { engineEndpoints } from '#speech/engine-endpoints.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { engineConfig } from '#test/support/engine-session.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'

test('the engines are listed with state, load and last failure', async () => {
  const scripts = [{ refusal: 'unreachable' as const }]
  const failing = {
    ...createScriptedEngine({ name: 'failing', scripts }),
    languages: ['sk'] as const,
  }
  const pool = new EnginePool(
    [
      failing,
      createScriptedEngine({ name: 'full', sessionsMax: 1 }),
      createScriptedEngine({ name: 'free' }),
    ],
    quietLog,
  )
  const open = (engineName: string, language: 'sk' | 'en') =>
    pool.open(
      { engineName, language, avoid: null },
      {
        language,
        vocabulary: [],
        endpointingMs: 600,
        signal: new AbortController().signal,
        listener() {},
      },
    )
  expect(open('failing', 'sk')).rejects.toThrow('scripted failure')
  const { session } = await open('full', 'en')
  const config = {
    engine: ['failing', 'full', 'free'].map((name) => ({
      ...engineConfig({ kind: 'vosk' }),
      name,
    })),
  }
  const [list] = engineEndpoints({ pool, config, now: () => new Date() })
  expect(list?.handle({} as never)).toMatchObject({
    object: 'list',
    data: [
      {
        name: 'failing',
        kind: 'vosk',
        languages: ['sk'],
        state: 'failing',
        failures: 1,
        last_failure: { kind: 'unreachable' },
      },
      { name: 'full', state: 'busy', sessions: 1, max_sessions: 1, last_failure: null },
      { name: 'free', state: 'available', sessions: 0, failures: 0 },
    ],
  })
  session.abort()
  await pool.close()
})
