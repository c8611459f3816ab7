import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { transcriptionForm } from '#speech/transcriptions/request.ts'
import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { spokenFile } from '#test/support/spoken-files.ts'
import {
  startTranscriptionServer,
  type TranscriptionServer,
} from '#test/support/transcription-server.ts'

/** Every field of the form, with every kind of invalid value: the error names that field. */

let gateway: Gateway
let server: TranscriptionServer
const fileBytesMax = 200_000

beforeAll(async () => {
  gateway = await startGateway()
  const czech = { ...createScriptedEngine({ name: 'czech' }), languages: ['cs', 'sk'] as const }
  server = await startTranscriptionServer(gateway, {
    engines: [createScriptedEngine(), czech],
    speech: { fileBytesMax },
  })
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

const { file } = spokenFile([2])
const named = (bytes: Uint8Array, name = 'a.wav') => new File([bytes.slice()], name)
const text = (content: string, name = 'a.txt') => named(new TextEncoder().encode(content), name)
const valid = { file, model: 'stt' }

type Value = string | File
type Form = Readonly<Record<string, Value | readonly Value[]>>
type Case = {
  readonly title: string
  /** In addition to valid fields; an empty list removes one. */
  readonly form: Form
  readonly param: string
  readonly status?: number
  readonly code?: string
  /** Part of the message. */
  readonly says: string
}

const tooLarge = { status: 413, code: 'request_too_large' }
const cases: readonly Case[] = [
  { title: 'no file', form: { file: [] }, param: 'file', says: 'the field "file"' },
  { title: 'a text as file', form: { file: 'a text' }, param: 'file', says: 'the field "file"' },
  {
    title: 'a file with another name',
    form: { file: [], audio: file },
    param: 'file',
    says: '"file"',
  },
  { title: 'two files', form: { file: [file, file] }, param: 'file', says: 'one file' },
  { title: 'a file in an unknown field', form: { other: file }, param: 'other', says: 'one file' },
  ...['model', 'language', 'prompt', 'response_format', 'stream', 'temperature'].flatMap((name) => [
    { title: `a file as ${name}`, form: { [name]: text('stt') }, param: name, says: 'not a file' },
    {
      title: `a long ${name}`,
      form: { [name]: 'x'.repeat(65_537) },
      param: name,
      says: 'too long',
      ...tooLarge,
    },
  ]),
  ...['keywords', 'timestamp_granularities', 'include'].map((name) => ({
    title: `a file as ${name}`,
    form: { [`${name}[]`]: text('word') },
    param: name,
    says: 'not a file',
  })),
  {
    title: 'another file format',
    form: { file: text('hello, this is a text') },
    param: 'file',
    code: 'unsupported_file_format',
    says: 'WAV, MP3, or Opus',
  },
  {
    title: 'an empty file',
    form: { file: text('') },
    param: 'file',
    code: 'unsupported_file_format',
    says: 'unknown',
  },
  {
    title: 'another encoding in a known format',
    form: { file: named(wavFile(new Uint8Array(4_000), { format: 2, bits: 4 })) },
    param: 'file',
    code: 'unsupported_audio',
    says: 'WAV',
  },
  {
    title: 'a file without audio',
    form: { file: named(wavFile(new Uint8Array(0))) },
    param: 'file',
    code: 'bad_audio',
    says: 'no audio',
  },
  {
    title: 'unreadable audio',
    form: { file: text(`ID3${'noise '.repeat(20_000)}`, 'a.mp3') },
    param: 'file',
    says: '',
  },
  {
    title: 'a file above the limit',
    form: { file: named(wavFile(new Uint8Array(fileBytesMax + 1))) },
    param: 'file',
    status: 413,
    code: 'file_too_large',
    says: 'bytes',
  },
  {
    title: 'a file that announces its size',
    form: { file: named(new Uint8Array(fileBytesMax + 2_000_000)) },
    param: 'file',
    status: 413,
    code: 'file_too_large',
    says: String(fileBytesMax),
  },
  { title: 'no model', form: { model: [] }, param: 'model', says: 'required' },
  { title: 'an empty model', form: { model: ' ' }, param: 'model', says: 'required' },
  {
    title: 'an unknown model or engine',
    form: { model: 'whisper-9' },
    param: 'model',
    status: 404,
    code: 'model_not_found',
    says: 'whisper-9',
  },
  ...['xx', 'EN', 'en-GB', 'english', 'de', '["en"]'].map((language) => ({
    title: `the language ${language}`,
    form: { language },
    param: 'language',
    code: 'unsupported_language',
    says: 'cs, en, sk',
  })),
  {
    title: 'a language that the engine does not serve',
    form: { model: 'czech', language: 'en' },
    param: 'language',
    code: 'unsupported_language',
    says: 'cs, sk',
  },
  {
    title: 'a keyword that is too long',
    form: { 'keywords[]': ['fox', 'x'.repeat(129)] },
    param: 'keywords',
    says: '128',
  },
  ...['hot', '-0.1', '1.1', 'NaN', '1e999', '[0]'].map((temperature) => ({
    title: `the temperature ${temperature}`,
    form: { temperature },
    param: 'temperature',
    says: '0 to 1',
  })),
  ...['yaml', 'diarized_json', 'JSON', '{}'].map((response_format) => ({
    title: `the format ${response_format}`,
    form: { response_format },
    param: 'response_format',
    says: 'json, text, srt, verbose_json, vtt',
  })),
  ...['perhaps', '2', 'null', '[true]'].map((stream) => ({
    title: `stream=${stream}`,
    form: { stream },
    param: 'stream',
    says: 'true, false',
  })),
  ...['timestamp_granularities', 'timestamp_granularities[]'].flatMap((name) =>
    [['letter'], ['word', 'sentence'], ['["word"]'], ['']].map((values) => ({
      title: `${name} ${values.join(', ')}`,
      form: { [name]: values, response_format: 'verbose_json' },
      param: 'timestamp_granularities',
      says: 'word, segment',
    })),
  ),
  ...['include', 'include[]'].map((name) => ({
    title: `an unknown value of ${name}`,
    form: { [name]: ['logprobs', 'speakers'] },
    param: 'include',
    says: 'logprobs',
  })),
]

async function post(path: string, form: Form): Promise<Response> {
  const body = new FormData()
  for (const [name, value] of Object.entries({ ...valid, ...form })) {
    for (const one of [value].flat()) body.append(name, one)
  }
  const headers = { authorization: `Bearer ${await gateway.token()}` }
  return await fetch(new URL(path, server.url), { method: 'POST', headers, body })
}

describe('the error names its field for', () => {
  test.each(cases)('$title', async ({ form, param, says, ...expected }) => {
    // Validation does not depend on how the transcript is returned.
    for (const streaming of 'stream' in form ? [{}] : [{}, { stream: 'true' }]) {
      const response = await post('/v1/audio/transcriptions', { ...form, ...streaming })
      const { error } = Object(await readError(response))
      const { status = 400, code = 'invalid_request' } = expected
      if (!response.headers.get('content-type')?.includes('event-stream')) {
        expect(response.status).toBe(status)
      }
      expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type'])
      expect(error.param).toBe(param)
      expect(error.type).toBe(status === 404 ? 'not_found_error' : 'invalid_request_error')
      expect(error.message).toContain(says)
      if (says !== '') expect(error.code).toBe(code)
      await eventually('the capacity is released', () => server.transcriptions.running() === 0)
      expect(server.filesLeft()).toEqual([])
    }
  })

  test('every field of the documented form', () => {
    const tried = new Set(cases.map(({ param }) => param))
    for (const field of Object.keys(transcriptionForm.properties)) {
      expect(tried).toContain(field.replace('[]', ''))
    }
  })

  test('a translation, whatever its form', async () => {
    for (const form of [{}, { model: [] }, { file: [] }, { response_format: 'yaml' }]) {
      const response = await post('/v1/audio/translations', form)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({
        error: { code: 'translation_not_supported', param: 'model', type: 'invalid_request_error' },
      })
    }
  })
})

/** Audio that turns out to be unreadable may end a stream that has begun. */
async function readError(response: Response): Promise<unknown> {
  const body = await response.text()
  if (!response.headers.get('content-type')?.includes('event-stream')) return JSON.parse(body)
  const events = body.split('\n\n').filter((event) => event.startsWith('data: {'))
  return JSON.parse(events.at(-1)?.slice('data: '.length) ?? '{}')
}
