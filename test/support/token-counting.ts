import { createInference } from '#inference/inference.ts'
import type { CallRecord } from '#inference/open-call.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { createRouter } from '#inference/routing/router.ts'
import {
  createTokenCounter,
  type TokenCounter,
  type TokenCounterDeps,
} from '#inference/token-count/counter.ts'
import type { Target, UpstreamQuirks } from '#inference/upstream.ts'
import type { UpstreamKind } from '#inference/upstreams/index.ts'
import { adaptersWithoutModels } from './adapters.ts'
import { defaultQuirks, makeRequest, userMessage } from './generation.ts'
import { type ReplayAnswer, type ReplayRequest, startReplayUpstream } from './replay-upstream.ts'
import { openTransport } from './transport.ts'

/** Counts over real sockets, with scripted upstreams. */

const started: { stop(): Promise<void> | void }[] = []

export async function stopCounting(): Promise<void> {
  for (const one of started.splice(0)) await one.stop()
}

export function startCounter(settings: Partial<TokenCounterDeps['settings']> = {}): TokenCounter {
  const counter = createTokenCounter({
    inference: createInference({
      adapters: adaptersWithoutModels,
      transport: openTransport(),
      limits: {
        eventBytesMax: 65_536,
        toolArgumentCharsMax: 65_536,
        streamsMax: 1,
        outputCharsMax: 1,
      },
      deadlines: { firstEventMs: 60_000, gapMs: 60_000, totalMs: 60_000 },
      retry: { retriesMax: 3, backoffMs: 1, retryAfterMaxMs: 50 },
      router: createRouter(),
      onSettled() {},
    }),
    settings: {
      tokenizer: 'none',
      upstreamMs: 5_000,
      upstreamAbsentMs: 600_000,
      textsMax: 1_000,
      calibrateEveryMs: 0,
      calibratedModelsMax: 10,
      ...settings,
    },
    log: { warn() {} },
  })
  started.push({ stop: () => counter.close() })
  return counter
}

export async function countingUpstream(answer: (request: ReplayRequest) => ReplayAnswer) {
  const upstream = await startReplayUpstream(answer)
  started.push(upstream)
  return upstream
}

export const jsonAnswer = (body: unknown, status = 200): ReplayAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

type TargetOptions = { kind?: UpstreamKind; tokenizerFile?: string } & Partial<UpstreamQuirks>

export function countedTarget(baseUrl: string, options: TargetOptions = {}): Target {
  const { kind = 'chat', tokenizerFile, ...quirks } = options
  return {
    upstream: {
      name: 'counting',
      kind,
      baseUrl,
      key: 'a-secret',
      headers: {},
      quirks: { ...defaultQuirks, ...quirks },
    },
    model: 'upstream-name',
    ...(tokenizerFile === undefined ? {} : { tokenizerFile }),
  }
}

/** An unreachable target without a token counter. */
export const silentTarget = countedTarget('http://127.0.0.1:1/v1')

export const saying = (text: string): GenerationRequest =>
  makeRequest({ items: [userMessage(text)] })

export const recordOf = (target: Target, inputTokens: number): CallRecord => ({
  kind: 'generate',
  requestId: 'req_1',
  userId: 'user-1',
  keyId: null,
  model: 'asked-name',
  modelId: null,
  agentId: null,
  surface: null,
  responseId: null,
  endedAtMs: 0,
  isReported: false,
  target,
  outcome: 'completed',
  error: null,
  retries: 0,
  hedged: false,
  outputChars: 0,
  queuedMs: 0,
  firstEventMs: 1,
  durationMs: 2,
  usage: {
    inputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 1,
    reasoningTokens: 0,
    totalTokens: inputTokens + 1,
  },
})
