import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { spokenFile } from '#test/support/spoken-files.ts'
import {
  startTranscriptionServer,
  type TranscriptionServer,
} from '#test/support/transcription-server.ts'

/** Invalid forms, models and files. */

let gateway: Gateway
let server: TranscriptionServer

const engine = createScriptedEngine()
const czech = { ...createScriptedEngine({ name: 'czech' }), languages: ['cs', 'sk'] as const }
const fileBytesMax = 200_000

beforeAll(async () => {
  gateway = await startGateway()
  server = await startTranscriptionServer(gateway, {
    engines: [engine, czech],
    speech: { fileBytesMax },
  })
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

const { file } = spokenFile([2])
const model = 'stt'

type Fields = Parameters<TranscriptionServer['post']>[0]

async function refusalOf(fields: Fields, init?: RequestInit) {
  const response = await server.post(fields, init)
  const { error } = Object(await response.json())
  const { message, type, param, code } = Object(error)
  expect(message, String(response.status)).toBeString()
  expect(type).toBeString()
  await eventually('the capacity is released', () => server.transcriptions.running() === 0)
  expect(server.filesLeft()).toEqual([])
  return { status: response.status, param, code, message }
}

describe('a form', () => {
  test('without a file, or with one in another field, is refused with the field name', async () => {
    const refusal = { status: 400, code: 'invalid_request', param: 'file' }
    expect(await refusalOf({ model })).toMatchObject(refusal)
    expect(await refusalOf({ model, file: 'a text' })).toMatchObject(refusal)
    expect(await refusalOf({ model, audio: file })).toMatchObject(refusal)
  })

  test('that is not multipart is refused', async () => {
    const headers = {
      authorization: `Bearer ${await gateway.token()}`,
      'content-type': 'application/json',
    }
    const init = { headers, body: JSON.stringify({ model }) }
    expect(await refusalOf({}, init)).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  test('with fields of other services is accepted', async () => {
    const response = await server.post({
      file,
      model,
      temperature: '0.2',
      chunking_strategy: 'auto',
      user: 'somebody',
      'include[]': 'logprobs',
    })
    expect(response.status).toBe(200)
  })
})

describe('a model', () => {
  test('that is unknown does not exist', async () => {
    expect(await refusalOf({ file, model: 'gpt-4' })).toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    })
  })

  test('serves the languages of its engine, or of all of them', async () => {
    const refusal = { status: 400, code: 'unsupported_language', param: 'language' }
    for (const language of ['xx', 'EN', 'english', 'de']) {
      const error = await refusalOf({ file, model, language })
      expect(error).toMatchObject(refusal)
      expect(error.message).toContain('cs, en, sk')
    }
    const ofEngine = await refusalOf({ file, model: 'czech' })
    expect(ofEngine).toMatchObject(refusal)
    expect(ofEngine.message).toContain('cs, sk')
    expect((await server.post({ file, model: 'czech', language: 'sk' })).status).toBe(200)
    expect((await server.post({ file, model: 'scripted' })).status).toBe(200)
  })
})

describe('a file', () => {
  const bytesOf = (text: string) => Buffer.from(text, 'latin1')
  const named = (bytes: Uint8Array, name: string) => new File([bytes.slice()], name)
  const mp4 = bytesOf('\0\0\0\x20ftypM4A \0\0\0\0M4A mp42isom\0\0\0\0')

  test.each([
    ['MP4', named(mp4, 'memo.m4a')],
    ['FLAC', named(bytesOf(`fLaC\0\0\0\x22${'\0'.repeat(40)}`), 'a.flac')],
    ['is unknown', named(bytesOf('hello, this is a text'), 'notes.txt')],
    ['is unknown', named(bytesOf(''), 'empty.wav')],
  ])('of another format (%s) is refused with the supported formats', async (what, other) => {
    const refusal = await refusalOf({ file: other, model })
    expect(refusal).toMatchObject({ status: 400, code: 'unsupported_file_format', param: 'file' })
    expect(refusal.message).toContain(what)
    expect(refusal.message).toContain('WAV, MP3, or Opus in Ogg or WebM')
  })

  test('whose audio has another encoding, or none, is refused', async () => {
    const adpcm = wavFile(new Uint8Array(4_000), { format: 2, bits: 4 })
    expect(await refusalOf({ file: named(adpcm, 'a.wav'), model })).toMatchObject({
      status: 400,
      code: 'unsupported_audio',
      param: 'file',
    })
    const silent = wavFile(new Uint8Array(0))
    expect(await refusalOf({ file: named(silent, 'a.wav'), model })).toMatchObject({
      status: 400,
      code: 'bad_audio',
      param: 'file',
    })
    const noise = named(bytesOf('noise '.repeat(5_000)), 'noise.mp3')
    expect(await refusalOf({ file: noise, model })).toMatchObject({ status: 400, param: 'file' })
  })

  test('above the limit is refused, by announced or actual size', async () => {
    const long = named(wavFile(new Uint8Array(fileBytesMax + 1)), 'long.wav')
    expect(await refusalOf({ file: long, model })).toMatchObject({
      status: 413,
      code: 'file_too_large',
    })
    const longer = named(new Uint8Array(fileBytesMax + 2_000_000), 'longer.wav')
    expect(await refusalOf({ file: longer, model })).toMatchObject({
      status: 413,
      code: 'file_too_large',
    })
  })

  test('whose upload is aborted leaves nothing behind', async () => {
    const socket = connect(server.port, '127.0.0.1')
    const part = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    const head = [
      'POST /v1/audio/transcriptions HTTP/1.1',
      ...['Host: gateway', 'Content-Length: 100000'],
      'Content-Type: multipart/form-data; boundary=b',
      `Authorization: Bearer ${await gateway.token()}`,
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n${part}RIFF`)
    await eventually('the file is on disk', () => server.filesLeft().length === 1)
    socket.destroy()
    await eventually('the file is removed', () => server.filesLeft().length === 0)
    await eventually('nothing is running', () => server.transcriptions.running() === 0)
    expect(engine.running()).toBe(0)
  })
})

test('a credential is required', async () => {
  const refusal = await server.post({ file, model }, { headers: {} })
  expect(refusal.status).toBe(401)
})

test('a translation is refused with what to do instead', async () => {
  const client = await gateway.openai()
  const failure: unknown = await client.audio.translations
    .create({ model, file: spokenFile([2]).file })
    .catch((error: unknown) => error)
  expect(Object(failure)).toMatchObject({ status: 400, code: 'translation_not_supported' })
  expect(String(failure)).toContain('/v1/audio/transcriptions')
})
