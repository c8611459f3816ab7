import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, symlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import OpenAI from 'openai'
import { asRecord } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { childrenOf, temporaryFolder } from '#test/support/process.ts'
import {
  lacksWhisper,
  plainWords,
  speechRuntime,
  tinyWhisper,
} from '#test/support/whisper-weights/tiny-whisper.ts'

/** A folder with Flite, as `.ci/voice` installs it. */
const installed = process.env['SLUICE_TEST_VOICE']
if (installed === undefined) console.warn('SLUICE_TEST_VOICE names no folder: no text is spoken')

const sentence = 'Good morning, everybody.'
const longText = `${sentence} `.repeat(150)

async function speech(gateway: Gateway, body: object): Promise<Response> {
  return fetch(`${gateway.url}/v1/audio/speech`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await gateway.token()}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ model: 'flite', voice: 'slt', input: sentence, ...body }),
  })
}

function speakers(): readonly number[] {
  return childrenOf(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('speak-text')
    } catch {
      return false
    }
  })
}

test('without the package, the error names the command that installs it', async () => {
  const gateway = await startGateway({
    environment: { SLUICE_FLITE_PACKAGE: '/nowhere' },
    model: [{ name: 'flite', mode: 'speak', upstreams: ['local-voice'] }],
  })
  const response = await speech(gateway, {})
  expect(response.status).toBe(503)
  const { error } = asRecord(await response.json())
  expect(asRecord(error)['message']).toContain('bun run voice:install')
  await gateway.stop()
})

describe.skipIf(installed === undefined)('a gateway with the local voice', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({
      environment: { SLUICE_FLITE_PACKAGE: installed ?? '' },
      flite: { processesMax: 1, queueMax: 0 },
      retry: { retriesMax: 0 },
    })
    await gateway.deps.catalogue.asked()
  })
  afterAll(() => gateway.stop())

  test('the model list has it with its voices', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: await gateway.token() })
    const { data } = await client.models.list()
    expect(data.find(({ id }) => id === 'flite')).toMatchObject({
      id: 'flite',
      mode: 'speak',
      voices: ['slt', 'awb', 'kal16', 'rms'],
    })
  })

  test('the formats have the same duration, each at its rate', async () => {
    const wav = Buffer.from(await (await speech(gateway, { response_format: 'wav' })).arrayBuffer())
    expect(wav.subarray(0, 4).toString('latin1')).toBe('RIFF')
    expect(wav.readUInt32LE(24)).toBe(16_000)
    const durationMs = (wav.length - 44) / 32
    expect(durationMs).toBeGreaterThan(1_000)
    const pcm = await (await speech(gateway, { response_format: 'pcm' })).arrayBuffer()
    expect(Math.abs(pcm.byteLength / 48 - durationMs)).toBeLessThan(5)
    const mp3 = await speech(gateway, {})
    expect(mp3.headers.get('content-type')).toBe('audio/mpeg')
    const bytes = new Uint8Array(await mp3.arrayBuffer())
    expect([bytes[0], (bytes[1] ?? 0) & 0xe0]).toEqual([0xff, 0xe0])
    // 64 kbit/s, and at most a few frames of padding.
    expect(Math.abs(bytes.length / 8 - durationMs)).toBeLessThan(250)
    const opus = await speech(gateway, { response_format: 'opus' })
    expect(opus.headers.get('content-type')).toBe('audio/ogg')
    expect(Math.abs(opusMs(Buffer.from(await opus.arrayBuffer())) - durationMs)).toBeLessThan(1)
    const fast = await (await speech(gateway, { response_format: 'wav', speed: 2 })).arrayBuffer()
    expect(fast.byteLength / wav.length).toBeLessThan(0.7)
  })

  test.each([
    ['voice', { voice: 'alloy' }],
    ['response_format', { response_format: 'aac' }],
    ['response_format', { response_format: 'flac' }],
    ['input', { input: '。。。' }],
  ])('a request that it cannot fulfil is refused with %s as param', async (param, body) => {
    const response = await speech(gateway, body)
    expect(response.status).toBe(400)
    expect(asRecord(await response.json())).toMatchObject({ error: { param } })
  })

  test('a full queue is refused, and a client that leaves ends its process', async () => {
    const client = await holdSpeech(gateway, {
      input: longText,
      response_format: 'wav',
      speed: 0.25,
    })
    const [pid] = speakers()
    expect(pid).toBeNumber()
    const second = await speech(gateway, {})
    expect(second.status).toBe(503)
    expect(asRecord(await second.json())).toMatchObject({ error: { code: 'upstream_overloaded' } })
    client.destroy()
    await eventually('the process ended', () => !speakers().includes(pid ?? 0))
    expect((await speech(gateway, {})).status).toBe(200)
  })
})

test.skipIf(installed === undefined || lacksWhisper)(
  'a speech model recognises the words, in every format of files',
  async () => {
    const data = temporaryFolder()
    symlinkSync(speechRuntime, join(data, 'sherpa'))
    const gateway = await startGateway({
      environment: { SLUICE_FLITE_PACKAGE: installed ?? '', SLUICE_DATA: data },
      engine: [{ name: 'whisper', kind: 'local', model: tinyWhisper, openMs: 60_000 }],
    })
    await gateway.deps.catalogue.asked()
    const input = 'The quick brown fox jumps over the lazy dog. Please close the door.'
    for (const format of ['opus', 'mp3', 'wav']) {
      const spoken = await speech(gateway, { input, response_format: format })
      const form = new FormData()
      form.append('model', 'stt')
      form.append('language', 'en')
      form.append('file', new File([await spoken.arrayBuffer()], `speech.${format}`))
      const body = { method: 'POST', body: form }
      const { text } = asRecord(
        await (await gateway.request('/v1/audio/transcriptions', body)).json(),
      )
      expect([format, plainWords(String(text)).trim()]).toEqual([format, plainWords(input)])
    }
    await gateway.stop()
  },
)

/** The duration that the positions of an Ogg Opus file tell (RFC 7845, 4). */
function opusMs(file: Buffer): number {
  const preSkip = file.readUInt16LE(file.indexOf('OpusHead') + 10)
  const last = file.lastIndexOf('OggS')
  expect(file.readUInt8(last + 5)).toBe(4)
  return (Number(file.readBigInt64LE(last + 6)) - preSkip) / 48
}

/** A client that stops reading after the first bytes; far more audio follows than sockets buffer. */
async function holdSpeech(gateway: Gateway, body: object): Promise<Socket> {
  const { hostname, port } = new URL(gateway.url)
  const text = JSON.stringify({ model: 'flite', voice: 'slt', ...body })
  const authorization = `Bearer ${await gateway.token()}`
  const socket = connect(Number(port), hostname)
  const started = Promise.withResolvers<void>()
  socket.once('error', started.reject)
  socket.once('data', () => {
    socket.pause()
    started.resolve()
  })
  socket.write(
    `POST /v1/audio/speech HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: ${authorization}\r\n` +
      `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  )
  await started.promise
  return socket
}
