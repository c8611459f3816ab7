import type { EngineConfig } from '#config/schema.ts'
import type { Engine, EngineFeatures, EngineOpenOptions } from '#speech/engine.ts'
import type { EngineKind } from '#speech/engines/engine-kind.ts'
import {
  createServerEngine,
  type ServerProtocol,
  type ServerSession,
} from '#speech/engines/server-session.ts'
import type { Log } from '#telemetry/log.ts'
import { ItemProtocol } from './item-protocol.ts'
import { NemoProtocol } from './nemo-protocol.ts'
import { VllmProtocol } from './vllm-protocol.ts'

export type RealtimeSettings = {
  readonly config: EngineConfig
  readonly sampleRateHz: number
  readonly options: EngineOpenOptions
}

type Dialect = {
  readonly sampleRateHz: number
  readonly features: EngineFeatures
  readonly headers: Readonly<Record<string, string>>
  query(config: EngineConfig): [string, string][]
  readonly Protocol: new (session: ServerSession, settings: RealtimeSettings) => ServerProtocol
}

const textOnly = { partials: true, words: false, confidence: false, finalize: true }

/** Several protocols share one name; the operator configures which one a server speaks. */
const dialects: Readonly<Record<string, Dialect>> = {
  ga: {
    sampleRateHz: 24_000,
    features: textOnly,
    headers: {},
    query: () => [['intent', 'transcription']],
    Protocol: ItemProtocol,
  },
  beta: {
    sampleRateHz: 24_000,
    features: textOnly,
    headers: { 'openai-beta': 'realtime=v1' },
    // Self-hosted servers select the model by the URL.
    query: ({ model }) => [
      ['intent', 'transcription'],
      ...(model === undefined ? [] : [['model', model] satisfies [string, string]]),
    ],
    Protocol: ItemProtocol,
  },
  vllm: {
    sampleRateHz: 16_000,
    features: textOnly,
    headers: {},
    query: () => [],
    Protocol: VllmProtocol,
  },
  nemo: {
    sampleRateHz: 16_000,
    features: { partials: true, words: true, confidence: true, finalize: true },
    headers: {},
    query: () => [],
    Protocol: NemoProtocol,
  },
}

/** Servers with an OpenAI-style /v1/realtime. */
export function createOpenAiRealtimeEngine(config: EngineConfig, deps: { log: Log }): Engine {
  const dialect = dialects[config.dialect]
  if (dialect === undefined) throw new Error(`no dialect "${config.dialect}"`)
  const sampleRateHz = config.sampleRateHz ?? dialect.sampleRateHz
  const credential = config.key === undefined ? {} : { authorization: `Bearer ${config.key}` }
  return createServerEngine({
    config,
    log: deps.log,
    features: dialect.features,
    sampleRateHz,
    address: () => ({
      defaultPath: '/v1/realtime',
      query: dialect.query(config),
      headers: { ...dialect.headers, ...credential },
    }),
    protocol: (session, options) =>
      new dialect.Protocol(session, { config, sampleRateHz, options }),
  })
}

export const openAiRealtime: EngineKind = {
  location: 'url',
  dialects: Object.keys(dialects),
  create: createOpenAiRealtimeEngine,
}
