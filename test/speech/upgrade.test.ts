import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'

/** The upgrade of /v1/stt: query, credential and refusals. */

let gateway: Gateway
let server: SpeechServer
let token: string

const engine = { ...createScriptedEngine(), languages: ['en', 'cs', 'sk'] as const }
const slovak = { ...createScriptedEngine({ name: 'slovak' }), languages: ['sk'] as const }
const supported = ['cs', 'en', 'sk']

beforeAll(async () => {
  gateway = await startGateway()
  server = startSpeechServer(gateway, { engines: [engine, slovak] })
  token = await gateway.token()
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

const pcm = 'encoding=pcm_int16&sample_rate_hz=16000'

async function refusalOf(query: string, withToken = token) {
  const client = await openSpeech(server.port, { query, token: withToken })
  expect(client.head).toStartWith('HTTP/1.1 101')
  const refusal = await client.refusal()
  await eventually('the socket is closed', client.isClosed)
  expect(client.frames().length).toBe(1)
  return refusal
}

describe('a query', () => {
  test('with "language" is refused first, naming the new parameter and the languages', async () => {
    for (const query of [
      `language=cs&lang=cs&${pcm}`,
      'language=xx&lang=xx&encoding=nothing',
      'language=',
    ]) {
      const refusal = await refusalOf(query, 'no-token')
      expect(refusal).toMatchObject({
        code: 'deprecated_parameter',
        closeCode: 1008,
        param: 'language',
        details: { use: 'lang' },
      })
      expect(Object(refusal.details)['supported_languages'].toSorted()).toEqual(supported)
    }
  })

  test.each(['xx', 'EN', 'en-US', '', 'de'])('for the language "%s" is refused', async (lang) => {
    const refusal = await refusalOf(`lang=${lang}&encoding=nothing`, 'no-token')
    expect(refusal).toMatchObject({
      code: 'unsupported_language',
      closeCode: 1008,
      param: 'lang',
      details: { value: lang },
    })
    expect(Object(refusal.details)['supported_languages'].toSorted()).toEqual(supported)
  })

  test.each(['lang=en', 'encoding=', 'encoding=flac', 'encoding=PCM_INT16'])(
    '"%s" is refused with the supported encodings',
    async (query) => {
      expect(await refusalOf(query)).toMatchObject({
        code: 'unsupported_encoding',
        closeCode: 1008,
        param: 'encoding',
        details: { supported_encodings: ['pcm_int16', 'pcm_float32', 'wav', 'mp3', 'opus'] },
      })
    },
  )

  test.each(['pcm_int16', 'pcm_float32'])('for %s requires a sample rate', async (encoding) => {
    expect(await refusalOf(`encoding=${encoding}`)).toMatchObject({
      code: 'missing_parameter',
      closeCode: 1008,
      param: 'sample_rate_hz',
    })
  })

  test.each(['7999', '48001', '16000.5', '16k', '-16000', '1e4', ''])(
    'with the sample rate "%s" is refused',
    async (rate) => {
      expect(await refusalOf(`encoding=pcm_int16&sample_rate_hz=${rate}`)).toMatchObject({
        code: 'invalid_parameter',
        closeCode: 1008,
        param: 'sample_rate_hz',
        details: { minimum: 8_000, maximum: 48_000 },
      })
    },
  )

  test('with a repeated parameter is refused', async () => {
    expect(await refusalOf(`lang=en&lang=cs&${pcm}`)).toMatchObject({
      code: 'invalid_parameter',
      param: 'lang',
    })
  })

  test.each([
    ['lang=cs&encoding=wav', 'cs', 'wav', null],
    ['encoding=mp3&sample_rate_hz=nonsense', 'en', 'mp3', null],
    ['encoding=opus', 'en', 'opus', null],
    ['encoding=pcm_float32&sample_rate_hz=8000', 'en', 'pcm_float32', 8_000],
    ['encoding=pcm_int16&sample_rate_hz=48000&lang=sk', 'sk', 'pcm_int16', 48_000],
  ])('"%s" is accepted', async (query, lang, encoding, rate) => {
    const client = await openSpeech(server.port, { query, token })
    const ready = await client.start()
    expect(ready).toMatchObject({ lang, audio: { encoding, sample_rate_hz: rate } })
    await client.end()
  })

  test('names an engine, which has to exist and to serve the language', async () => {
    const client = await openSpeech(server.port, { query: `lang=sk&engine=slovak&${pcm}`, token })
    expect(await client.start()).toMatchObject({ engine: { name: 'slovak' } })
    await client.end()
    expect(await refusalOf(`engine=nothing&${pcm}`)).toMatchObject({
      code: 'engine_not_found',
      closeCode: 1008,
      param: 'engine',
    })
    expect(await refusalOf(`lang=cs&engine=slovak&${pcm}`)).toMatchObject({
      code: 'unsupported_language',
      param: 'lang',
      details: { value: 'cs', supported_languages: ['sk'] },
    })
  })

  test('with unknown parameters leads to one warning, which omits the token', async () => {
    const client = await openSpeech(server.port, { query: `${pcm}&model=x&language_=cs`, token })
    await client.start({ type: 'session_start', colour: 1, options: { speed: 2 } })
    const warning = await client.waitFor('warning')
    expect(warning).toMatchObject({
      code: 'unknown_fields',
      details: { fields: ['model', 'language_', 'colour', 'options.speed'] },
    })
    await client.end()
    expect(client.of('warning').length).toBe(1)
  })
})

describe('a credential', () => {
  test('is accepted in the query, in either header, and as an API key', async () => {
    const made = Object(await (await gateway.post('/v1/api-keys', { name: 'stt' })).json())
    const ways = [
      { token },
      { token: made['key'] },
      { headers: { authorization: `Bearer ${token}` } },
      { headers: { authorization: `Bearer ${made['key']}` } },
      { headers: { 'x-api-key': made['key'] } },
    ]
    for (const way of ways) {
      const client = await openSpeech(server.port, way)
      await client.start()
      await client.end()
    }
  })

  test('that is missing, wrong or lacks the permission is refused after the upgrade', async () => {
    const none = await openSpeech(server.port)
    expect(await none.refusal()).toMatchObject({ code: 'unauthorized', closeCode: 1008 })
    for (const wrong of ['', 'a.b.c', 'sk-svc-v1-wrong']) {
      expect(await refusalOf(pcm, wrong)).toMatchObject({ code: 'unauthorized', closeCode: 1008 })
    }
    const stranger = await gateway.token(['strangers'], 'a-stranger')
    expect(await refusalOf(pcm, stranger)).toMatchObject({
      code: 'permission_denied',
      closeCode: 1008,
    })
  })

  test('an invalid one in the query is not replaced by a header', async () => {
    const client = await openSpeech(server.port, {
      token: 'a.b.c',
      headers: { authorization: `Bearer ${token}` },
    })
    expect(await client.refusal()).toMatchObject({ code: 'unauthorized' })
  })

  test('never appears in the log', async () => {
    const secret = `${await gateway.token(['strangers'], 'secret')}`
    const wrong = 'eyJhbGciOi.a-wrong-token.signature'
    await refusalOf(pcm, secret)
    await refusalOf('language=cs', secret)
    await refusalOf(pcm, wrong)
    await refusalOf(pcm, 'an-opaque-secret')
    const good = await openSpeech(server.port, { token })
    await good.start()
    await good.end()
    await fetch(`http://127.0.0.1:${server.port}/v1/stt?token=${secret}`)
    await fetch(`http://127.0.0.1:${server.port}/v1/stt/none?token=an-opaque-secret`)
    expect(server.logLines.length).toBeGreaterThan(5)
    const lines = server.logLines.join('\n')
    for (const value of [secret, wrong, 'an-opaque-secret', token]) {
      expect(lines).not.toContain(value)
    }
  })
})

describe('without a WebSocket', () => {
  const ask = (headers: Record<string, string>) =>
    fetch(`http://127.0.0.1:${server.port}/v1/stt?${pcm}`, { headers })

  test('an authorised client gets 426', async () => {
    const answer = await ask({ authorization: `Bearer ${token}` })
    expect([answer.status, Object(await answer.json())['error']['code']]).toEqual([
      426,
      'upgrade_required',
    ])
  })

  test('other clients are refused first', async () => {
    expect((await ask({})).status).toBe(401)
    const stranger = await gateway.token(['strangers'], 'a-stranger')
    expect((await ask({ authorization: `Bearer ${stranger}` })).status).toBe(403)
  })
})

test('an invalid handshake is refused and leaves nothing behind', async () => {
  const socket = connect(server.port, '127.0.0.1')
  let httpResponse = ''
  socket.on('data', (piece) => {
    httpResponse += piece
  })
  // Sec-WebSocket-Key is missing.
  const head = [
    `GET /v1/stt?${pcm}&token=${token} HTTP/1.1`,
    'Host: gateway',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await eventually('the server responds', () => httpResponse.includes('\r\n\r\n'))
  expect(httpResponse).toStartWith('HTTP/1.1 400')
  expect(server.openSockets()).toBe(0)
  socket.destroy()
})

test('compression is not negotiated, and a subprotocol is confirmed', async () => {
  const client = await openSpeech(server.port, {
    token,
    headers: {
      'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits',
      'sec-websocket-protocol': 'stt.v1',
    },
  })
  expect(client.head).not.toMatch(/sec-websocket-extensions/i)
  expect(client.head).toMatch(/sec-websocket-protocol: stt\.v1/i)
  expect(client.head).toMatch(/x-request-id: req_/i)
  await client.start()
  await client.end()
})

test('a browser receives code and reason in the close event', async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stt?language=cs`)
  const closed = await new Promise<CloseEvent>((resolve) => {
    socket.onclose = resolve
  })
  expect([closed.code, closed.wasClean]).toEqual([1008, true])
  expect(JSON.parse(closed.reason)).toMatchObject({
    code: 'deprecated_parameter',
    param: 'language',
    use: 'lang',
  })
  expect(Buffer.byteLength(closed.reason)).toBeLessThanOrEqual(123)
})
