import { afterAll, beforeAll, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import { programEnvironment } from '#config/load.ts'
import { builtInEngine } from '#speech/engines/demo.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { pocketsphinxCommand, pocketsphinxExists } from '#test/support/pocketsphinx/engine.ts'
import {
  type SpeechForm,
  sentences,
  speechFile,
  speechToolsExist,
} from '#test/support/speech-material.ts'
import {
  startTranscriptionServer,
  type TranscriptionServer,
} from '#test/support/transcription-server.ts'

/** Every supported container, with a real recogniser. */

let gateway: Gateway
let server: TranscriptionServer
let openai: OpenAI

const isMissing = !(pocketsphinxExists && speechToolsExist)

beforeAll(async () => {
  gateway = await startGateway()
  const deps = { ...engineDeps(), environment: programEnvironment() }
  const recogniser = createEngine(
    engineConfig({
      kind: 'exec',
      name: 'pocketsphinx',
      languages: ['en'],
      command: pocketsphinxCommand(),
      openMs: 30_000,
    }),
    deps,
  )
  const engines = [recogniser, createEngine(builtInEngine, deps)]
  server = await startTranscriptionServer(gateway, { engines })
  openai = await server.openai()
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

const forms: [SpeechForm, string][] = [
  ['wav', 'fox.wav'],
  ['ogg', 'fox.ogg'],
  ['webm', 'fox.webm'],
  ['mp3', 'fox.mp3'],
  // The format is detected from the bytes; the name does not matter.
  ['ogg', 'fox.wav'],
  ['webm', 'blob'],
]

test.skipIf(isMissing).each(forms)(
  'speech in %s, sent as %s, is transcribed with word times',
  async (form, name) => {
    const response = await openai.audio.transcriptions.create({
      file: new File([speechFile('fox', form).slice()], name),
      model: 'pocketsphinx',
      language: 'en',
      prompt: 'A fox and a dog.',
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    })
    expect(response.text).toBe(sentences.fox)
    expect(response.words?.map(({ word }) => word).join(' ')).toBe(sentences.fox)
    const [segment] = response.segments ?? []
    expect(Math.abs((segment?.start ?? 0) - 0.74)).toBeLessThanOrEqual(0.1)
    expect(Math.abs((segment?.end ?? 0) - 4.46)).toBeLessThanOrEqual(0.1)
    expect(segment?.avg_logprob).toBeLessThan(0)
    expect(Object(response)['untranscribed_ms']).toBe(0)
  },
)

test.skipIf(isMissing)('logprobs of words are included on request', async () => {
  const { logprobs, text } = await openai.audio.transcriptions.create({
    file: new File([speechFile('door', 'wav').slice()], 'door.wav'),
    model: 'pocketsphinx',
    include: ['logprobs'],
  })
  expect(text).toBe(sentences.door)
  expect(logprobs?.map(({ token }) => token).join(' ')).toBe(sentences.door)
  for (const { logprob } of logprobs ?? []) expect(logprob).toBeWithin(-14, 0.001)
})

test.skipIf(!speechToolsExist)('the demo engine reports speech times in any language', async () => {
  for (const form of ['wav', 'ogg', 'webm', 'mp3'] as const) {
    const response = await openai.audio.transcriptions.create({
      file: new File([speechFile('door', form).slice()], `door.${form}`),
      model: 'stt',
      language: 'sk',
      response_format: 'verbose_json',
    })
    expect(response.text).toMatch(/^(\[speech \d\.\d\d s, level -\d+ dBFS\] ?)+$/)
    expect(response.language).toBe('sk')
    expect(Math.abs(response.duration - 5.66)).toBeLessThan(0.1)
  }
})
