import { type ServerDialect, serverKind } from '#speech/engines/server-session.ts'
import { ItemProtocol } from './item-protocol.ts'
import { NemoProtocol } from './nemo-protocol.ts'
import { VllmProtocol } from './vllm-protocol.ts'

const common = {
  features: { partials: true, words: false, confidence: false, finalize: true },
  frameMs: 100,
  reportsProgress: false,
  path: '/v1/realtime',
  authorization: 'Bearer',
} as const

/** Several protocols share one name; the operator configures which one a server speaks. */
const dialects: Readonly<Record<string, ServerDialect>> = {
  ga: {
    ...common,
    sampleRateHz: 24_000,
    query: () => [['intent', 'transcription']],
    protocol: (session) => new ItemProtocol(session),
  },
  beta: {
    ...common,
    sampleRateHz: 24_000,
    headers: { 'openai-beta': 'realtime=v1' },
    // Self-hosted servers select the model by the URL.
    query: ({ config: { model } }) => [
      ['intent', 'transcription'],
      ...(model === undefined ? [] : [['model', model] as const]),
    ],
    protocol: (session) => new ItemProtocol(session),
  },
  vllm: { ...common, protocol: (session) => new VllmProtocol(session) },
  nemo: {
    ...common,
    features: { partials: true, words: true, confidence: true, finalize: true },
    protocol: (session) => new NemoProtocol(session),
  },
}

/** Servers with an OpenAI-style /v1/realtime. */
export const openAiRealtime = {
  ...serverKind(({ dialect: name }) => {
    const dialect = dialects[name]
    if (dialect === undefined) throw new Error(`no dialect "${name}"`)
    return dialect
  }),
  dialects: Object.keys(dialects),
}
