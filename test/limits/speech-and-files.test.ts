import { afterEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { openSpeech } from '#test/support/speech-client.ts'

let gateway: Gateway | undefined
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

async function start(options: GatewayOptions): Promise<Gateway> {
  gateway = await startGateway({ engine: [{ kind: 'demo' }], ...options })
  return gateway
}

const minuteOfAudio = new Uint8Array(60 * 16_000 * 2)

test('speech sessions at the same time are limited, and a slot returns with the end', async () => {
  const here = await start({ limits: { default: { speech_sessions: 1 } } })
  const token = await here.token()
  const first = await openSpeech(here.port, { token })
  await first.start()
  const second = await openSpeech(here.port, { token })
  second.send({ type: 'session_start' })
  expect(await second.refusal()).toMatchObject({
    code: 'capacity',
    closeCode: 1013,
    details: { retry_after_ms: expect.any(Number) },
  })
  const other = await openSpeech(here.port, { token: await here.token(['users'], 'other') })
  await other.start()
  await first.end()
  await eventually('the slot returns', async () => {
    const next = await openSpeech(here.port, { token })
    next.send({ type: 'session_start' })
    await eventually('an answer', () => next.frames().length > 0)
    return next.of('session_ready').length === 1
  })
})

test('minutes of speech count for sessions and files when they end', async () => {
  const here = await start({ limits: { default: { speech_minutes_per_hour: 1 } } })
  const token = await here.token()
  const session = await openSpeech(here.port, { token })
  await session.start()
  for (let at = 0; at < minuteOfAudio.length; at += 64_000) {
    session.sendAudio(minuteOfAudio.subarray(at, at + 64_000))
  }
  await session.end()
  const refused = await openSpeech(here.port, { token })
  refused.send({ type: 'session_start' })
  expect(await refused.refusal()).toMatchObject({ code: 'capacity' })
  const form = new FormData()
  form.set('model', 'demo')
  form.set('file', new File([new Uint8Array(44)], 'a.wav'))
  const response = await here.request('/v1/audio/transcriptions', { method: 'POST', body: form })
  expect(response.status).toBe(429)
  expect(Object(await response.json()).error).toMatchObject({
    code: 'rate_limit_exceeded',
    message: expect.stringContaining('The limit of 1 minutes of speech per hour of this user'),
  })
})

test('the bytes of all stored files of a user are limited', async () => {
  const here = await start({ limits: { default: { stored_bytes: 1_000 } } })
  const upload = async (name: string, bytes: number) => {
    const form = new FormData()
    form.set('purpose', 'assistants')
    form.set('file', new File([new Uint8Array(bytes).fill(65)], name))
    const response = await here.request('/v1/files', { method: 'POST', body: form })
    return { status: response.status, body: Object(await response.json()) }
  }
  const first = await upload('a.txt', 600)
  expect(first.status).toBeLessThan(300)
  const refused = await upload('b.txt', 401)
  expect(refused.status).toBe(507)
  expect(refused.body.error).toMatchObject({ code: 'stored_bytes_exceeded' })
  const listed = Object(await (await here.request('/v1/files')).json())
  expect(listed.data).toHaveLength(1)
  expect((await upload('c.txt', 400)).status).toBeLessThan(300)
  expect((await upload('d.txt', 1)).status).toBe(507)
})
