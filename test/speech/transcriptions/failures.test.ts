import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { APIError } from 'openai'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import {
  createScriptedEngine,
  type ScriptedEngine,
  type ScriptedEngineOptions,
} from '#test/support/scripted-engine.ts'
import { spokenFile, textOf } from '#test/support/spoken-files.ts'
import {
  startTranscriptionServer,
  type TranscriptionServer,
  type TranscriptionServerOptions,
} from '#test/support/transcription-server.ts'

/** Engine failures, deadlines, capacity and disconnects of file transcriptions. */

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
  await eventually('everything is released', () => {
    const choice = { language: 'en', engineName: null, avoid: null } as const
    return server.transcriptions.running() === 0 && server.pool.hasCapacity(choice)
  })
  expect(engine.running()).toBe(0)
  expect(server.filesLeft()).toEqual([])
}

async function codeOf(response: Response): Promise<unknown> {
  return Object(Object(await response.json())['error'])['code']
}

const model = 'stt'
const stallsAtTheEnd = { speech: { finalizeMs: 50 } }
const talk = spokenFile([5, 20, 8, 12])
const { file, words } = talk
/** Ten seconds without a pause, so that there is no final. */
const monologue = spokenFile([100])

test('a file continues on a new engine after a failure', async () => {
  const { server, engine } = await start({ scripts: [{ crashAtMs: 1_500 }, { crashAtMs: 900 }] })
  const response = await server.post({ file, model })
  expect(Object(await response.json())['text']).toBe(textOf(words))
  expect(engine.opened()).toBe(3)
  await givenBack(server, engine)
})

test('lost speech fails the request, or is listed with verbose_json', async () => {
  const options = { speech: { replayMsMax: 1_000 } }
  const scripts = [{ crashAtMs: 5_000 }]
  const fields = { file: monologue.file, model }
  for (const form of ['json', 'text', 'srt', 'vtt']) {
    const { server, engine } = await start({ scripts, wordsMax: 200, canFinalize: false }, options)
    const response = await server.post({ ...fields, response_format: form })
    expect(response.status).toBe(502)
    expect(await codeOf(response)).toBe('audio_lost')
    await givenBack(server, engine)
  }
  const { server, engine } = await start({ scripts, wordsMax: 200, canFinalize: false }, options)
  const response = await server.post({ ...fields, response_format: 'verbose_json' })
  const transcript = Object(await response.json())
  expect(transcript.untranscribed_ms).toBeGreaterThan(1_000)
  expect(response.headers.get('x-untranscribed-ms')).toBe(String(transcript.untranscribed_ms))
  const missing = transcript.gaps.map(
    ({ start, end }: { start: number; end: number }) => end - start,
  )
  const missingS = missing.reduce((sum: number, gap: number) => sum + gap, 0)
  expect(missingS).toBeCloseTo(transcript.untranscribed_ms / 1000, 3)
  expect(transcript.text).toEndWith(' 99 100')
  expect(transcript.text).not.toStartWith('1 ')
  await givenBack(server, engine)
})

test('without an engine a file fails, and partial results are not returned', async () => {
  const scripts = [{ crashAtMs: 2_000 }]
  const { server, engine } = await start({ scripts }, { speech: { rolloversMax: 0 } })
  const response = await server.post({ file, model })
  expect(response.status).toBe(502)
  expect(response.headers.get('x-should-retry')).toBe('false')
  expect(await codeOf(response)).toBe('engine_failed')
  await givenBack(server, engine)
})

test('a failed stream ends with an error, never with done', async () => {
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
  expect(deltas.join('')).toBe(textOf(words.slice(0, 25)))
  await givenBack(server, engine)
})

/** Each misses a deadline after the first utterance: in the middle, at the end, and in total. */
const misses = [
  [
    'engine_stalled',
    { scripts: [{ stallAtMs: 2_500 }] },
    { engineStallMs: 50, rolloversMax: 0 },
    [5],
  ],
  ['finalize_timeout', { scripts: [{ isEndless: true }] }, { finalizeMs: 50 }, [5, 20, 8, 12]],
  ['transcription_timeout', { scripts: [{ stallAtMs: 2_500 }] }, { fileMs: 1_000 }, [5]],
] as const

test('a deadline after some text returns that text with a warning', async () => {
  for (const [code, engineOptions, speech, utterances] of misses) {
    const { server, engine } = await start(engineOptions, { speech })
    const response = await server.post({ file, model })
    const transcript = Object(await response.json())
    expect([response.status, transcript.warnings?.[0]?.code]).toEqual([200, code])
    const said = utterances.reduce<number>((sum, count) => sum + count, 0)
    expect(transcript.text).toBe(textOf(words.slice(0, said)))
    expect(response.headers.get('x-transcript-incomplete')).toBe(code)
    await givenBack(server, engine)
  }
})

test('a stream that misses a deadline after some text ends with done and the warning', async () => {
  const { server, engine } = await start({ scripts: [{ isEndless: true }] }, stallsAtTheEnd)
  const openai = await server.openai()
  const stream = await openai.audio.transcriptions.create({ file, model, stream: true })
  const events: object[] = []
  for await (const event of stream) events.push(event)
  expect(events.at(-1)).toMatchObject({
    type: 'transcript.text.done',
    text: textOf(words),
    warnings: [{ code: 'finalize_timeout' }],
  })
  await givenBack(server, engine)
})

test('a deadline without any text is a timeout', async () => {
  const stall = { scripts: [{ stallAtMs: 500 }] }
  for (const [code, engineOptions, speech] of [
    ['engine_stalled', stall, { engineStallMs: 50, rolloversMax: 0 }],
    ['finalize_timeout', { scripts: [{ isEndless: true, muteFromMs: 0 }] }, { finalizeMs: 50 }],
    ['transcription_timeout', stall, { fileMs: 100 }],
  ] as const) {
    const { server, engine } = await start(engineOptions, { speech })
    const response = await server.post({ file, model })
    expect([response.status, await codeOf(response)]).toEqual([504, code])
    await givenBack(server, engine)
  }
})

test('capacity errors include Retry-After', async () => {
  const { server, engine } = await start({ sessionsMax: 1, scripts: [{ stallAtMs: 500 }] })
  const controller = new AbortController()
  const first = server.post({ file, model }, { signal: controller.signal }).catch(() => null)
  await eventually('the engine is in use', () => engine.running() === 1)
  const second = await server.post({ file, model })
  expect(second.status).toBe(503)
  expect(second.headers.get('retry-after')).toBe('1')
  expect(await codeOf(second)).toBe('engine_busy')
  controller.abort()
  await first
  await givenBack(server, engine)
  expect((await server.post({ file, model })).status).toBe(200)
})

test('concurrent files are limited per user and per server', async () => {
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
    await eventually('one transcription is running', () => engine.running() === 1)
    const second = await server.post({ file, model })
    expect(second.status).toBe(status)
    expect(second.headers.get('retry-after')).toBe('1')
    expect(second.headers.get('x-should-retry')).toBe('true')
    controller.abort()
    await first
    await givenBack(server, engine)
  }
})

test('a disconnect releases the engine, before and during a stream', async () => {
  for (const stream of ['false', 'true']) {
    const { server, engine } = await start({ scripts: [{ stallAtMs: 2_500 }] })
    const controller = new AbortController()
    const { signal } = controller
    const response = server.post({ file, model, stream }, { signal })
    if (stream === 'true') {
      const reader = (await response).body?.getReader()
      expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('1 2 3 4 5')
    } else await eventually('the transcription is running', () => engine.running() === 1)
    controller.abort()
    await response.catch(() => null)
    await givenBack(server, engine)
  }
})

test('an idle stream sends heartbeats', async () => {
  const { server, engine } = await start(
    { scripts: [{ stallAtMs: 300 }] },
    { stream: { heartbeatMs: 10 } },
  )
  const controller = new AbortController()
  const response = await server.post({ file, model, stream: 'true' }, { signal: controller.signal })
  const reader = response.body?.getReader()
  const heartbeat = 'data: {"type":"transcript.text.delta","delta":""}\n\n'
  let wire = ''
  for (const decoder = new TextDecoder(); wire.length < heartbeat.length * 3; ) {
    wire += decoder.decode((await reader?.read())?.value)
  }
  expect(wire.replaceAll(heartbeat, '')).toBe('')
  controller.abort()
  await givenBack(server, engine)
})

test('a long file is decoded at the pace of the engine', async () => {
  const long = spokenFile(Array.from({ length: 60 }, () => 10))
  const { server, engine } = await start({ takeMs: 200 })
  const response = await server.post({ file: long.file, model })
  expect(Object(await response.json())['text']).toBe(textOf(long.words))
  expect(engine.inFlightMsMax()).toBeLessThanOrEqual(2_200)
})
