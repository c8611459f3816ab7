import { afterAll, beforeAll, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSocket, type SocketClient } from '#test/support/socket-client.ts'

/** What the protocols of other services refuse, in their own shapes, over the built-in engine. */

let gateway: Gateway
const text = 1
const binary = 2

beforeAll(async () => {
  gateway = await startGateway({
    model: [{ name: 'nova-2', mode: 'transcribe', upstreams: ['demo'], groups: ['admins'] }],
  })
})
afterAll(() => gateway.stop())

async function newKey() {
  const { key, id } = Object(await (await gateway.post('/v1/api-keys', { name: 'k' })).json())
  return { key: String(key), id: String(id) }
}

async function realtime(query = 'intent=transcription', headers: Record<string, string> = {}) {
  const { key, id } = await newKey()
  const socket = await openSocket(gateway.port, {
    path: `/v1/realtime?${query}`,
    headers: { authorization: `Bearer ${key}`, ...headers },
  })
  return { ...socket, keyId: id }
}

const events = ({ texts }: Pick<SocketClient, 'texts'>) => texts.map((each) => JSON.parse(each))

async function next(client: Pick<SocketClient, 'texts'>, type: string) {
  await eventually(`${type} comes`, () => events(client).some((event) => event.type === type))
  return events(client).findLast((event) => event.type === type)
}

const second = Buffer.alloc(48_000)
const append = { type: 'input_audio_buffer.append', audio: second.toString('base64') }
const update = (session: object) => ({
  type: 'session.update',
  event_id: 'mine',
  session: { type: 'transcription', ...session },
})
const input = (fields: object) => update({ audio: { input: fields } })

test.each([
  [update({ type: 'realtime' }), 'session.type', 'invalid_value'],
  [update({ tools: [] }), 'session.tools', 'unknown_parameter'],
  [
    input({ format: { type: 'audio/pcm', rate: 16_000 } }),
    'session.audio.input.format.rate',
    'invalid_value',
  ],
  [input({ format: { type: 'audio/opus' } }), 'session.audio.input.format.type', 'invalid_value'],
  [
    input({ transcription: { model: 'whisper-9' } }),
    'session.audio.input.transcription.model',
    'model_not_found',
  ],
  [
    input({ transcription: { model: 'nova-2' } }),
    'session.audio.input.transcription.model',
    'model_not_found',
  ],
  [
    input({ transcription: { language: 'xx' } }),
    'session.audio.input.transcription.language',
    'invalid_value',
  ],
  [
    input({ turn_detection: { type: 'semantic_vad' } }),
    'session.audio.input.turn_detection.type',
    'invalid_value',
  ],
  [
    input({ turn_detection: { type: 'server_vad', threshold: 2 } }),
    'session.audio.input.turn_detection.threshold',
    'invalid_value',
  ],
  [update({ include: ['item.x'] }), 'session.include', 'invalid_value'],
  [{ type: 'input_audio_buffer.append', audio: '***', event_id: 'mine' }, 'audio', 'invalid_value'],
  [
    { type: 'input_audio_buffer.commit', event_id: 'mine' },
    null,
    'input_audio_buffer_commit_empty',
  ],
  [{ type: 'response.create', event_id: 'mine' }, 'type', 'invalid_value'],
])('realtime: %j is refused, and the session continues', async (event, param, code) => {
  const client = await realtime()
  client.send(event)
  const { error } = await next(client, 'error')
  expect(error).toMatchObject({ type: 'invalid_request_error', code, param, event_id: 'mine' })
  client.send({ type: 'input_audio_buffer.clear' })
  await next(client, 'input_audio_buffer.cleared')
  client.socket.destroy()
})

test('realtime: settings are in force, of both forms, and fixed by the first audio', async () => {
  const client = await realtime('model=stt', { 'openai-beta': 'realtime=v1' })
  const created = await next(client, 'transcription_session.created')
  expect(created.session).toMatchObject({
    input_audio_format: 'pcm16',
    input_audio_transcription: { model: 'stt' },
    turn_detection: { type: 'server_vad', silence_duration_ms: 500 },
  })
  client.send(input({ turn_detection: null, noise_reduction: { type: 'near_field' } }))
  const { session } = await next(client, 'session.updated')
  expect(session.audio.input).toMatchObject({
    format: { type: 'audio/pcm', rate: 24_000 },
    noise_reduction: null,
    turn_detection: null,
  })
  client.send(append)
  client.send(input({ transcription: { language: 'de' } }))
  expect((await next(client, 'error')).error.code).toBe('session_not_changeable')
  client.send({ type: 'input_audio_buffer.commit' })
  const { item_id } = await next(client, 'input_audio_buffer.committed')
  const type = 'conversation.item.input_audio_transcription.completed'
  expect(await next(client, type)).toMatchObject({
    item_id,
    transcript: '',
    usage: { type: 'duration', seconds: 1 },
  })
  client.socket.destroy()
})

test('realtime: what was cleared is not transcribed', async () => {
  const client = await realtime()
  client.send(input({ turn_detection: null }))
  const tone = Buffer.from(
    Int16Array.from({ length: 24_000 }, (_, at) => 9_000 * Math.sin(at / 9)).buffer,
  )
  client.send({ ...append, audio: tone.toString('base64') })
  // The resampler holds the last milliseconds back.
  client.send(append)
  client.send({ type: 'input_audio_buffer.clear' })
  client.send(append)
  client.send({ type: 'input_audio_buffer.commit' })
  const type = 'conversation.item.input_audio_transcription.completed'
  expect((await next(client, type)).transcript).toBe('')
  client.send({ ...append, audio: tone.toString('base64') })
  client.send({ type: 'input_audio_buffer.commit' })
  await eventually(
    'the second turn',
    () => events(client).filter((each) => each.type === type).length > 1,
  )
  expect((await next(client, type)).transcript).toContain('speech')
  client.socket.destroy()
})

test.each([
  ['intent=conversation', 'intent'],
  ['model=gpt-realtime', 'model'],
  ['call_id=rtc_1', 'call_id'],
])('realtime: a connection with %s is refused', async (query, param) => {
  const client = await realtime(query)
  expect((await next(client, 'error')).error).toMatchObject({ code: 'invalid_parameter', param })
  await eventually('it is closed', () => client.closeCode() === 1008)
})

test('a revoked key ends live sessions of both protocols', async () => {
  const client = await realtime()
  await next(client, 'session.created')
  client.send(append)
  const { key, id } = await newKey()
  const live = await openSocket(gateway.port, {
    path: '/v1/listen?encoding=linear16&sample_rate=16000',
    headers: { 'sec-websocket-protocol': `token, ${key}` },
  })
  live.sendFrame(binary, second)
  await live.arrived()
  for (const each of [client.keyId, id]) {
    await gateway.request(`/v1/api-keys/${each}`, { method: 'DELETE' })
  }
  expect((await next(client, 'error')).error.code).toBe('invalid_api_key')
  expect(await next(live, 'Error')).toMatchObject({ variant: 'unauthorized' })
  await eventually(
    'both are closed',
    () => client.closeCode() === 1008 && live.closeCode() === 1008,
  )
})

test.each([
  ['diarize=true', 'diarize'],
  ['multichannel=true', 'multichannel'],
  ['redact=pci', 'redact'],
  ['callback=https://example.com', 'callback'],
  ['language=multi', 'language'],
  ['encoding=flac', 'encoding'],
  ['encoding=linear16', 'sample_rate'],
  ['channels=6&encoding=mulaw', 'channels'],
  ['interim_results=maybe', 'interim_results'],
  ['model=nova-9', 'nova-9'],
  ['model=nova-2', 'nova-2'],
])('listen: %s is refused with an error of its shape', async (query, named) => {
  const { key } = await newKey()
  const headers = { authorization: `Token ${key}` }
  for (const init of [
    { headers: { ...headers, upgrade: 'websocket', connection: 'upgrade' } },
    { method: 'POST', headers, body: second },
  ]) {
    const response = await fetch(`${gateway.url}/v1/listen?${query}`, init)
    const body = asRecord(await response.json())
    expect([response.status >= 400, Object.keys(body).toSorted()]).toEqual([
      true,
      ['err_code', 'err_msg', 'request_id'],
    ])
    expect(String(body['err_msg'])).toContain(named)
    expect(response.headers.get('dg-error')).toBe(String(body['err_msg']))
  }
})

test('listen: false for what is not supported, and a stream without audio', async () => {
  const { key } = await newKey()
  const client = await openSocket(gateway.port, {
    path: '/v1/listen?diarize=false&model=nova-3&language=en-US',
    headers: { authorization: `Token ${key}` },
  })
  client.sendFrame(text, '{"type":"KeepAlive"}')
  client.sendFrame(text, '{"type":"CloseStream"}')
  expect(await next(client, 'Metadata')).toMatchObject({ duration: 0, channels: 1 })
  await eventually('it is closed', () => client.closeCode() === 1000)
})

test('listen: bytes of no known container end the session as undecodable', async () => {
  const { key } = await newKey()
  const client = await openSocket(gateway.port, {
    path: '/v1/listen',
    headers: { authorization: `Token ${key}` },
  })
  client.sendFrame(binary, second)
  expect(await next(client, 'Error')).toMatchObject({ variant: 'wrong_encoding' })
  await eventually('it is closed', () => client.closeCode() === 1008)
})

test('a session has one line in the log, with its audio', async () => {
  const { key, id } = await newKey()
  const client = await openSocket(gateway.port, {
    path: '/v1/listen?encoding=linear16&sample_rate=16000',
    headers: { authorization: `Token ${key}` },
  })
  client.sendFrame(binary, second)
  client.sendFrame(text, '{"type":"CloseStream"}')
  expect(await next(client, 'Metadata')).toMatchObject({ duration: 1.5 })
  const lines = () => gateway.logLines.map((line) => JSON.parse(line))
  const own = () => lines().filter((line) => line.key_id === id && line.stats !== undefined)
  await eventually('it is logged', () => own().length > 0)
  expect(own()).toMatchObject([
    { route: '/v1/listen', session_end: 'client_end', stats: { audio_ms: 1_500 } },
  ])
})
