import type { EngineConfig } from '#config/schema.ts'
import type { Engine, EngineFeatures, EngineOpenOptions } from '#speech/engine.ts'
import {
  createServerEngine,
  type ServerLine,
  type ServerProtocol,
} from '#speech/engines/server-session.ts'
import type { Log } from '#telemetry/log.ts'
import { createCutProtocol } from './cut-protocol.ts'
import { createItemProtocol } from './item-protocol.ts'
import { createStreamProtocol } from './stream-protocol.ts'

/** What a protocol of this family is made from. */
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
  protocol(line: ServerLine, settings: RealtimeSettings): ServerProtocol
}

const textOnly = { partials: true, words: false, confidence: false, finalize: true }

/** The family has one name and several protocols; which one, the operator must know. */
const dialects: Readonly<Record<EngineConfig['dialect'], Dialect>> = {
  ga: {
    sampleRateHz: 24_000,
    features: textOnly,
    headers: {},
    query: () => [['intent', 'transcription']],
    protocol: createItemProtocol,
  },
  beta: {
    sampleRateHz: 24_000,
    features: textOnly,
    headers: { 'openai-beta': 'realtime=v1' },
    // Self-hosted servers choose by the URL, before any session is configured.
    query: ({ model }) => [
      ['intent', 'transcription'],
      ...(model === undefined ? [] : [['model', model] satisfies [string, string]]),
    ],
    protocol: createItemProtocol,
  },
  vllm: {
    sampleRateHz: 16_000,
    features: textOnly,
    headers: {},
    query: () => [],
    protocol: createCutProtocol,
  },
  nemo: {
    sampleRateHz: 16_000,
    features: { partials: true, words: true, confidence: true, finalize: true },
    headers: {},
    query: () => [],
    protocol: createStreamProtocol,
  },
}

/** Servers with a /v1/realtime of OpenAI's kind. */
export function createOpenAiRealtimeEngine(config: EngineConfig, deps: { log: Log }): Engine {
  const dialect = dialects[config.dialect]
  const sampleRateHz = config.sampleRateHz ?? dialect.sampleRateHz
  const credential = config.key === undefined ? {} : { authorization: `Bearer ${config.key}` }
  return createServerEngine({
    config,
    log: deps.log,
    features: dialect.features,
    sampleRateHz,
    address: () => ({
      usualPath: '/v1/realtime',
      query: dialect.query(config),
      headers: { ...dialect.headers, ...credential },
    }),
    protocol: (line, options) => dialect.protocol(line, { config, sampleRateHz, options }),
  })
}
