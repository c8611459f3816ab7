import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import {
  transcription,
  transcriptionEvent,
  verboseTranscription,
} from '#speech/transcriptions/record.ts'
import { checkDescribed } from '#test/support/described-shapes.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { spokenFile, textOf } from '#test/support/spoken-files.ts'
import {
  startTranscriptionServer,
  type TranscriptionServer,
} from '#test/support/transcription-server.ts'

/** The response formats, as the openai package reads them. */

let gateway: Gateway
let server: TranscriptionServer
let openai: OpenAI

beforeAll(async () => {
  gateway = await startGateway()
  const engine = { ...createScriptedEngine(), languages: ['cs', 'en'] as const }
  server = await startTranscriptionServer(gateway, { engines: [engine] })
  openai = await server.openai()
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

const { file, words } = spokenFile([3, 12])
const text = textOf(words)
const seconds = file.size > 44 ? (file.size - 44) / 32_000 : Number.NaN
const usage = { type: 'duration', seconds }
const first = { start: 0.5, end: 0.8, text: textOf(words.slice(0, 3)) }
const second = { start: 1.3, end: 2.5, text: textOf(words.slice(3)) }

/** The package has a type per format; the tests treat all of them as values. */
const create = (more: object = {}): Promise<unknown> =>
  openai.audio.transcriptions.create({ file, model: 'whisper-1', ...more })

test('a file is transcribed, with its duration as usage', async () => {
  expect(await create()).toEqual({ text, usage })
  expect(await create({ language: 'cs', response_format: 'json' })).toEqual({ text, usage })
})

test('plain text ends with a newline', async () => {
  expect(await create({ response_format: 'text' })).toBe(`${text}\n`)
})

test('SubRip captions have the times of the segments', async () => {
  expect(await create({ response_format: 'srt' })).toBe(
    `1\n00:00:00,500 --> 00:00:00,800\n${first.text}\n\n` +
      `2\n00:00:01,300 --> 00:00:02,500\n${second.text}\n\n`,
  )
})

test('WebVTT captions have the times of the segments', async () => {
  expect(await create({ response_format: 'vtt' })).toBe(
    `WEBVTT\n\n00:00:00.500 --> 00:00:00.800\n${first.text}\n\n` +
      `00:00:01.300 --> 00:00:02.500\n${second.text}\n\n`,
  )
})

describe('verbose_json', () => {
  const head = { task: 'transcribe', language: 'en', duration: seconds, text, usage }
  const whole = { untranscribed_ms: 0, gaps: [] }

  test('contains segments in the Whisper format', async () => {
    const response = await create({ response_format: 'verbose_json' })
    expect(response).toEqual({
      ...head,
      ...whole,
      segments: [first, second].map((segment, id) => ({
        ...segment,
        id,
        seek: segment.start * 100,
        tokens: [],
        temperature: 0,
        avg_logprob: 0,
        compression_ratio: expect.any(Number),
        no_speech_prob: 0,
      })),
    })
  })

  test('contains words and segments as requested', async () => {
    const options = { response_format: 'verbose_json' }
    const spans = words.map(({ word, startMs, endMs }) => ({
      word,
      start: startMs / 1000,
      end: endMs / 1000,
    }))
    const alone = await create({ ...options, timestamp_granularities: ['word'] })
    expect(alone).toEqual({ ...head, ...whole, words: spans })
    const both = Object(await create({ ...options, timestamp_granularities: ['word', 'segment'] }))
    expect(both.words).toEqual(spans)
    expect(both.segments).toHaveLength(2)
  })
})

describe('a stream', () => {
  test('sends each final once, then the complete text', async () => {
    const events: unknown[] = await Array.fromAsync(
      await openai.audio.transcriptions.create({ file, model: 'stt', stream: true }),
    )
    expect(events).toEqual([
      { type: 'transcript.text.delta', delta: first.text },
      { type: 'transcript.text.delta', delta: ` ${second.text}` },
      { type: 'transcript.text.done', text, usage },
    ])
  })

  test('with verbose_json sends segments with times', async () => {
    const events = await Array.fromAsync(
      await openai.audio.transcriptions.create({
        file,
        model: 'stt',
        stream: true,
        response_format: 'verbose_json',
      }),
    )
    expect(events.filter(({ type }) => type === 'transcript.text.segment')).toEqual([
      { type: 'transcript.text.segment', id: 'seg_0', speaker: '', ...first },
      { type: 'transcript.text.segment', id: 'seg_1', speaker: '', ...second },
    ])
  })

  test('consists of unnamed events and ends with [DONE]', async () => {
    const response = await server.post({ file, model: 'stt', stream: 'True' })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const wire = await response.text()
    expect(wire).toMatch(/^(data: [^\n]+\n\n)+$/)
    expect(wire).toEndWith('}\n\ndata: [DONE]\n\n')
  })
})

test('every format matches its documented schema', async () => {
  const post = (more: Record<string, string>) => server.post({ file, model: 'stt', ...more })
  checkDescribed(transcription, await (await post({ include: 'logprobs' })).json())
  const verbose = { response_format: 'verbose_json', timestamp_granularities: 'word' }
  const both = { ...verbose, 'timestamp_granularities[]': 'segment' }
  checkDescribed(verboseTranscription, await (await post(both)).json())
  const wire = await (await post({ ...both, include: 'logprobs', stream: 'true' })).text()
  const events = [...wire.matchAll(/^data: (\{.*)$/gm)].map(([, text]) => JSON.parse(text ?? ''))
  expect(events).toHaveLength(5)
  for (const event of events) checkDescribed(transcriptionEvent, event)
})

test('the gateway serves it with the built-in demo engine', async () => {
  const form = new FormData()
  for (const [name, value] of Object.entries({
    file,
    model: 'whisper-1',
    response_format: 'text',
  })) {
    form.append(name, value)
  }
  const response = await gateway.request('/v1/audio/transcriptions', { method: 'POST', body: form })
  expect(response.status).toBe(200)
  expect(await response.text()).toMatch(/^(\[speech \d\.\d\d s, level -\d+ dBFS\] ?)+\n$/)
})

test('a finished transcription releases its capacity and file', async () => {
  expect(server.transcriptions.running()).toBe(0)
  expect(server.filesLeft()).toEqual([])
  const ends = server.logLines.filter((line) => line.includes('"audio_ms"'))
  expect(Object(JSON.parse(ends[0] ?? '{}'))).toMatchObject({
    model: 'whisper-1',
    lang: 'en',
    audio_bytes: file.size,
    audio_ms: seconds * 1000,
    untranscribed_ms: 0,
  })
})
