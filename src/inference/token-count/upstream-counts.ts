import type { Inference, ModelCall } from '#inference/inference.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Target } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'
import type { MeasuredRequest } from './measured-text.ts'
import { slowCountMinMs } from './tokenizers.ts'

type UpstreamCountParams = {
  readonly request: GenerationRequest
  readonly target: Target
  readonly measured: MeasuredRequest
  readonly limitMs: number
} & CountedCall

/** What is recorded of a count that an upstream makes. */
export type CountedCall = Pick<ModelCall, 'context' | 'modelId' | 'agentId' | 'surface'>

export type UpstreamCountDeps = {
  inference: Pick<Inference, 'countTokens'>
  /** The most time that an upstream has. */
  upstreamMs: number
  /** How long a missing counter is not asked again. */
  upstreamAbsentMs: number
}

/** After a failure the upstream is not asked for this long. */
const failurePauseMs = 2_000
/** Concurrent calls of one worker. */
const callsMax = 64
const pausedModelsMax = 1_000
const cachedCountsMax = 2_000

/**
 * Returns a function that asks the token counter of an upstream, where one is configured. It returns
 * null without a counter, without a response in time, and for an implausible one. Never rejects.
 */
export function createUpstreamCounts({
  inference,
  upstreamMs,
  upstreamAbsentMs,
}: UpstreamCountDeps) {
  const cache = createLru<string, number>(cachedCountsMax)
  const pausedUntilMs = createLru<string, number>(pausedModelsMax)
  let calls = 0

  return async (params: UpstreamCountParams): Promise<number | null> => {
    const { request, target, measured, limitMs, ...counted } = params
    const { context } = counted
    if (target.upstream.quirks.tokenCounter === 'none') return null
    const model = modelKey(target)
    const key = `${model} ${contentKey(measured)}`
    const cached = cache.get(key)
    if (cached !== undefined) return cached
    if (limitMs < slowCountMinMs || calls >= callsMax) return null
    if (performance.now() < (pausedUntilMs.get(model) ?? 0)) return null
    const pause = (ms: number) => pausedUntilMs.set(model, performance.now() + ms)
    calls++
    try {
      const call = { ...counted, targets: [target] }
      const tokens = await inference.countTokens(call, request, Math.min(limitMs, upstreamMs))
      if (tokens === null) pause(upstreamAbsentMs)
      if (tokens === null || !isCount(tokens)) return null
      cache.set(key, tokens)
      return tokens
    } catch (error) {
      // A refusal of this request says nothing about the next one.
      if (isUpstreamFailure(error) && !context.signal.aborted) pause(failurePauseMs)
      return null
    } finally {
      calls--
    }
  }
}

/** Identifies a model at its upstream, independent of the name in a request. */
export function modelKey({ upstream, model }: Target): string {
  return `${upstream.name}/${model}`
}

/** Identifies the counted content of a request. */
function contentKey({ texts, templateTokens, opaqueTokens }: MeasuredRequest): string {
  const content = Bun.hash(texts.map(({ counts }) => counts.key).join()).toString(36)
  return `${content} ${templateTokens} ${opaqueTokens}`
}

/** A count of 0 is implausible: templates add tokens to every prompt. */
function isCount(tokens: number): boolean {
  return Number.isSafeInteger(tokens) && tokens > 0
}

function isUpstreamFailure(error: unknown): boolean {
  return !(error instanceof AppError) || error.status >= 429
}
