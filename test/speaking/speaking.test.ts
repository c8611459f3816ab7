import { afterAll, beforeAll, expect, test } from 'bun:test'
import OpenAI, { APIError } from 'openai'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { sendRaw } from '#test/support/raw-client.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'

/** `POST /v1/audio/speech` through the `openai` package, over a scripted upstream. */

let gateway: Gateway
let upstream: ReplayUpstream

const ok = { headers: { 'content-type': 'application/json' }, body: '{"data":[]}' }

beforeAll(async () => {
  upstream = await startReplayUpstream(() => ok)
  const entry = { mode: 'speak' as const, upstreams: ['upstream-0'] }
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, api: 'chat' }],
    model: [
      { ...entry, name: 'kokoro', upstreamModel: 'kokoro-82m' },
      { ...entry, name: 'secret', groups: ['admins'] },
      { name: 'chat', upstreams: ['upstream-0'] },
    ],
    deadlines: { gapMs: 500 },
    retry: { retriesMax: 1 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const audio = Uint8Array.from({ length: 200_000 }, (_, at) => (at * 7) % 251)
const request = { model: 'kokoro', input: 'Good morning.', voice: 'alloy' } as const

function speaks(type: string, body: Uint8Array, more: object = {}): void {
  upstream.answer(({ path }) =>
    path === '/v1/audio/speech' ? { headers: { 'content-type': type }, body, ...more } : ok,
  )
}

const client = async () =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: await gateway.token(), maxRetries: 0 })
const spoken = () => upstream.requests.filter(({ path }) => path === '/v1/audio/speech')
const lastRequest = () => asRecord(JSON.parse(spoken().at(-1)?.body ?? '{}'))

test.each([
  ['mp3', 'audio/mpeg'],
  ['opus', 'audio/ogg'],
  ['aac', 'audio/aac'],
  ['flac', 'audio/flac'],
  ['wav', 'audio/wav'],
  ['pcm', 'audio/pcm'],
] as const)('%s arrives byte for byte, in pieces', async (format, type) => {
  speaks(type, audio, { cutsAt: [1, 44, 70_000, 70_001] })
  const response = await (await client()).audio.speech.create({
    ...request,
    response_format: format,
    speed: 1.5,
    instructions: 'Cheerful.',
  })
  expect(response.headers.get('content-type')).toBe(type)
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(audio)
  expect(lastRequest()).toEqual({
    model: 'kokoro-82m',
    input: request.input,
    voice: 'alloy',
    response_format: format,
    speed: 1.5,
    instructions: 'Cheerful.',
  })
})

test('events hold the same audio, and end with the usage', async () => {
  speaks('audio/mpeg', audio, { cutsAt: [50_000] })
  const response = await (await client()).audio.speech.create({
    ...request,
    stream_format: 'sse',
  })
  expect(response.headers.get('content-type')).toStartWith('text/event-stream')
  const events = (await response.text())
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => JSON.parse(frame.slice('data: '.length)))
  const deltas = events.flatMap(({ type, audio: part }) =>
    type === 'speech.audio.delta' ? [part] : [],
  )
  expect(Buffer.concat(deltas.map((part) => Buffer.from(part, 'base64'))).equals(audio)).toBe(true)
  expect(events.at(-1)).toEqual({
    type: 'speech.audio.done',
    usage: { input_tokens: 13, output_tokens: 0, total_tokens: 13 },
  })
})

test('usage counts characters, and the seconds of a known format', async () => {
  const seconds = wavFile(new Uint8Array(64_000))
  speaks('audio/wav', seconds)
  const openai = await client()
  await (await openai.audio.speech.create({ ...request, response_format: 'wav' })).arrayBuffer()
  let found: JsonObject | undefined
  await eventually('it is recorded', async () => {
    const { data } = Object(await (await gateway.request('/v1/usage/records?kind=speech')).json())
    found = data.find((record: JsonObject) => record['audio_seconds'] === 2)
    return found !== undefined
  })
  expect(found).toMatchObject({ model: 'kokoro', input_tokens: 13, outcome: 'completed' })
})

test('audio waits at the upstream while the client does not read', async () => {
  const large = new Uint8Array(60_000_000)
  const pieceBytes = 60_000
  const cutsAt = Array.from({ length: 999 }, (_, index) => (index + 1) * pieceBytes)
  speaks('audio/pcm', large, { cutsAt })
  const before = upstream.bodyBytesSent()
  const body = { ...request, response_format: 'pcm' }
  const path = '/v1/audio/speech'
  const raw = sendRaw({ port: gateway.port, token: await gateway.token(), body, path }, true)
  let sent = -1
  await eventually('the upstream is paused', async () => {
    const last = sent
    sent = upstream.bodyBytesSent() - before
    await Bun.sleep(100)
    return sent > 0 && sent === last
  })
  expect(sent).toBeLessThan(large.length / 2)
  const { aborted } = upstream.connections
  raw.socket.destroy()
  await eventually('the upstream is aborted', () => upstream.connections.aborted > aborted)
})

test('an agent speaks with its voice, and only where the caller sees it and its model', async () => {
  speaks('audio/mpeg', audio)
  const made = await gateway.post('/v1/agents', {
    name: 'Guide',
    model: 'chat',
    speech: { model: 'kokoro', voice: 'af_heart', speed: 1.25, instructions: 'Calmly.' },
  })
  const { model_id: agent, can_speak: canSpeak, id } = asRecord(await made.json())
  expect(canSpeak).toBe(true)
  const speak = async (body: object) =>
    (await gateway.post('/v1/audio/speech', { input: 'Good morning.', ...body })).status
  expect(await speak({ agent })).toBe(200)
  const said = { model: 'kokoro-82m', input: 'Good morning.', response_format: 'mp3' }
  expect(lastRequest()).toEqual({
    ...said,
    voice: 'af_heart',
    speed: 1.25,
    instructions: 'Calmly.',
  })
  // What the request says takes precedence.
  expect(await speak({ agent, voice: 'alloy', speed: 1, instructions: 'Loudly.' })).toBe(200)
  expect(lastRequest()).toEqual({ ...said, voice: 'alloy', speed: 1, instructions: 'Loudly.' })
  const change = (speech: object | null) =>
    gateway.request(`/v1/agents/${id}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ speech }),
    })
  await change({ model: 'secret', voice: 'alloy' })
  expect(await speak({ agent })).toBe(404)
  await change(null)
  expect(await speak({ agent })).toBe(400)
  expect(await speak({ agent: 'vendor-agent-0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60' })).toBe(404)
})

async function refusal(body: object): Promise<APIError> {
  const openai = await client()
  const failure = await openai.audio.speech.create({ ...request, ...body }).then(
    () => null,
    (error: unknown) => error,
  )
  if (failure instanceof APIError) return failure
  throw new Error('it was not refused')
}

test.each([
  [{ input: 'x'.repeat(4_097) }, 400, 'input'],
  [{ input: '  ' }, 400, 'input'],
  [{ voice: '' }, 400, 'voice'],
  [{ response_format: 'ogg' }, 400, 'response_format'],
  [{ speed: 9 }, 400, 'speed'],
  [{ stream_format: 'ws' }, 400, 'stream_format'],
  [{ model: 'secret' }, 404, 'model'],
  [{ model: 'nothing' }, 404, 'model'],
])('%j is refused', async (body, status, param) => {
  const before = spoken().length
  expect(await refusal(body)).toMatchObject({ status, param })
  expect(spoken().length).toBe(before)
})

test.each([
  [{ status: 400, body: '{"error":{"message":"no such voice"}}' }, 400],
  [{ status: 429, body: '{}' }, 429],
  [{ status: 503, body: '{}' }, 503],
  [{ status: 200, body: '{"error":"busy"}' }, 502],
])('an upstream that answers %j', async (answer, status) => {
  upstream.answer(() => ({ ...answer, headers: { 'content-type': 'application/json' } }))
  expect((await refusal({})).status).toBe(status)
})

test.each(['audio', 'sse'] as const)(
  'a failure in the middle does not look complete: %s',
  async (form) => {
    speaks('audio/mpeg', audio, { cutsAt: [9_000], ending: 'hang' })
    const response = await (await client()).audio.speech.create({
      ...request,
      stream_format: form,
    })
    const text = await response.text().catch((error: unknown) => error)
    if (form === 'audio') expect(text).toBeInstanceOf(Error)
    else expect(String(text)).toContain('"code":"upstream_gap_timeout"')
    expect(String(text)).not.toContain('speech.audio.done')
  },
)
