import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { APIError } from 'openai'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import {
  createScriptedEngine,
  type ScriptedEngine,
  type ScriptedEngineOptions,
} from '#test/support/scripted-engine.ts'
import { said, spokenFile } from '#test/support/spoken-files.ts'
import {
  startTranscriptionServer,
  type TranscriptionServer,
  type TranscriptionServerOptions,
} from '#test/support/transcription-server.ts'

/** What happens to a file when its engine or its caller goes away. */

let gateway: Gateway
const servers: TranscriptionServer[] = []

beforeAll(async () => {
  gateway = await startGateway()
})
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})
afterAll(() => gateway.stop())

async function start(
  engine: ScriptedEngineOptions,
  options: Omit<TranscriptionServerOptions, 'engines'> = {},
): Promise<{ server: TranscriptionServer; engine: ScriptedEngine }> {
  const scripted = createScriptedEngine(engine)
  const server = await startTranscriptionServer(gateway, { engines: [scripted], ...options })
  servers.push(server)
  return { server, engine: scripted }
}

async function givenBack(server: TranscriptionServer, engine: ScriptedEngine): Promise<void> {
  await eventually('all is given back', () => {
    const choice = { language: 'en', engineName: null, avoid: null } as const
    return server.transcriptions.running() === 0 && server.pool.hasCapacity(choice)
  })
  expect(engine.running()).toBe(0)
  expect(server.filesLeft()).toEqual([])
}

async function codeOf(answer: Response): Promise<unknown> {
  return Object(Object(await answer.json())['error'])['code']
}

const model = 'stt'
const talk = spokenFile([5, 20, 8, 12])
const { file, words } = talk
/** Ten seconds without a pause, so that nothing of it has a final. */
const monologue = spokenFile([100])

test('a file goes on with a fresh engine where one breaks off', async () => {
  const { server, engine } = await start({ scripts: [{ crashAtMs: 1_500 }, { crashAtMs: 900 }] })
  const answer = await server.post({ file, model })
  expect(Object(await answer.json())['text']).toBe(said(words))
  expect(engine.asked()).toBe(3)
  await givenBack(server, engine)
})

test('speech that was lost with its engine is a failure, or is told', async () => {
  const options = { speech: { replayMsMax: 1_000 } }
  const scripts = [{ crashAtMs: 5_000 }]
  const asked = { file: monologue.file, model }
  for (const form of ['json', 'text', 'srt', 'vtt']) {
    const { server, engine } = await start({ scripts, wordsMax: 200 }, options)
    const answer = await server.post({ ...asked, response_format: form })
    expect(answer.status).toBe(502)
    expect(await codeOf(answer)).toBe('audio_lost')
    await givenBack(server, engine)
  }
  const { server, engine } = await start({ scripts, wordsMax: 200 }, options)
  const answer = await server.post({ ...asked, response_format: 'verbose_json' })
  const told = Object(await answer.json())
  expect(told.untranscribed_ms).toBeGreaterThan(1_000)
  expect(answer.headers.get('x-untranscribed-ms')).toBe(String(told.untranscribed_ms))
  const missing = told.gaps.map(({ start, end }: { start: number; end: number }) => end - start)
  const missingS = missing.reduce((sum: number, gap: number) => sum + gap, 0)
  expect(missingS).toBeCloseTo(told.untranscribed_ms / 1000, 3)
  expect(told.text).toEndWith(' 99 100')
  expect(told.text).not.toStartWith('1 ')
  await givenBack(server, engine)
})

test('without any engine left a file fails, and what was recorder is no answer', async () => {
  const scripts = [{ crashAtMs: 2_000 }]
  const { server, engine } = await start({ scripts }, { speech: { rolloversMax: 0 } })
  const answer = await server.post({ file, model })
  expect(answer.status).toBe(502)
  expect(answer.headers.get('x-should-retry')).toBe('false')
  expect(await codeOf(answer)).toBe('engine_failed')
  await givenBack(server, engine)
})

test('a stream that breaks off ends with an error, never with its last event', async () => {
  const scripts = [{ crashAtMs: 4_000 }]
  const { server, engine } = await start({ scripts }, { speech: { rolloversMax: 0 } })
  const openai = await server.openai()
  const stream = await openai.audio.transcriptions.create({ file, model, stream: true })
  const deltas: string[] = []
  const reading = (async () => {
    for await (const event of stream) if ('delta' in event) deltas.push(event.delta)
  })()
  const failure = await reading.catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(APIError)
  expect(failure).toMatchObject({ code: 'engine_failed', type: 'upstream_error' })
  expect(deltas.join('')).toBe(said(words.slice(0, 25)))
  await givenBack(server, engine)
})

test('an engine that stalls, or never ends, is given up in time', async () => {
  const stalling = await start(
    { scripts: [{ stallAtMs: 1_000 }] },
    { speech: { engineStallMs: 50, rolloversMax: 0 } },
  )
  const stalled = await stalling.server.post({ file, model })
  expect(stalled.status).toBe(504)
  expect(await codeOf(stalled)).toBe('engine_stalled')
  await givenBack(stalling.server, stalling.engine)

  const endless = await start({ scripts: [{ isEndless: true }] }, { speech: { finalizeMs: 50 } })
  const late = await endless.server.post({ file, model })
  expect(late.status).toBe(504)
  expect(await codeOf(late)).toBe('finalize_timeout')
  await givenBack(endless.server, endless.engine)
})

test('a file has its time and no more', async () => {
  const { server, engine } = await start(
    { scripts: [{ stallAtMs: 1_000 }] },
    { speech: { fileMs: 100 } },
  )
  const answer = await server.post({ file, model })
  expect(answer.status).toBe(504)
  expect(await codeOf(answer)).toBe('transcription_timeout')
  await givenBack(server, engine)
})

test('who cannot be served now is told when to come back', async () => {
  const { server, engine } = await start({ sessionsMax: 1, scripts: [{ stallAtMs: 500 }] })
  const controller = new AbortController()
  const first = server.post({ file, model }, { signal: controller.signal }).catch(() => null)
  await eventually('the engine is taken', () => engine.running() === 1)
  const second = await server.post({ file, model })
  expect(second.status).toBe(503)
  expect(second.headers.get('retry-after')).toBe('1')
  expect(await codeOf(second)).toBe('engine_busy')
  controller.abort()
  await first
  await givenBack(server, engine)
  expect((await server.post({ file, model })).status).toBe(200)
})

test('one caller has so many files at once, and a server so many in all', async () => {
  for (const [limit, status] of [
    ['sessionsPerUserMax', 429],
    ['sessionsMax', 503],
  ] as const) {
    const { server, engine } = await start(
      { scripts: [{ stallAtMs: 500 }] },
      { speech: { [limit]: 1 } },
    )
    const controller = new AbortController()
    const first = server.post({ file, model }, { signal: controller.signal }).catch(() => null)
    await eventually('one is going on', () => engine.running() === 1)
    const second = await server.post({ file, model })
    expect(second.status).toBe(status)
    expect(second.headers.get('retry-after')).toBe('1')
    expect(second.headers.get('x-should-retry')).toBe('true')
    controller.abort()
    await first
    await givenBack(server, engine)
  }
})

test('a caller who leaves frees the engine, before and within a stream', async () => {
  for (const stream of ['false', 'true']) {
    const { server, engine } = await start({ scripts: [{ stallAtMs: 2_500 }] })
    const controller = new AbortController()
    const { signal } = controller
    const answer = server.post({ file, model, stream }, { signal })
    if (stream === 'true') {
      const reader = (await answer).body?.getReader()
      expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('1 2 3 4 5')
    } else await eventually('it is being done', () => engine.running() === 1)
    controller.abort()
    await answer.catch(() => null)
    await givenBack(server, engine)
  }
})

test('a stream with nothing to tell says that it is alive', async () => {
  const { server, engine } = await start(
    { scripts: [{ stallAtMs: 300 }] },
    { stream: { heartbeatMs: 10 } },
  )
  const controller = new AbortController()
  const answer = await server.post({ file, model, stream: 'true' }, { signal: controller.signal })
  const reader = answer.body?.getReader()
  const heartbeat = 'data: {"type":"transcript.text.delta","delta":""}\n\n'
  let wire = ''
  for (const decoder = new TextDecoder(); wire.length < heartbeat.length * 3; ) {
    wire += decoder.decode((await reader?.read())?.value)
  }
  expect(wire.replaceAll(heartbeat, '')).toBe('')
  controller.abort()
  await givenBack(server, engine)
})

test('a file is given to an engine at its pace, however long it is', async () => {
  const long = spokenFile(Array.from({ length: 60 }, () => 10))
  const { server, engine } = await start({ takeMs: 200 })
  const answer = await server.post({ file: long.file, model })
  expect(Object(await answer.json())['text']).toBe(said(long.words))
  expect(engine.inFlightMsMax()).toBeLessThanOrEqual(2_200)
})
