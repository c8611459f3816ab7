import type { Inference } from '#inference/inference.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Target } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { MeasuredRequest } from './measured-text.ts'
import { slowCountMinMs } from './tokenizers.ts'

/** The token counters of upstreams, where one is configured. */
export type UpstreamCounts = {
  /** null: no counter, no response in time, or an implausible one. Never rejects. */
  count(params: UpstreamCountParams): Promise<number | null>
}

type UpstreamCountParams = {
  readonly request: GenerationRequest
  readonly target: Target
  readonly measured: MeasuredRequest
  readonly context: RequestContext
  readonly limitMs: number
}

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

export function createUpstreamCounts(deps: UpstreamCountDeps): UpstreamCounts {
  const cache = createLru<string, number>(cachedCountsMax)
  const pausedUntilMs = createLru<string, number>(pausedModelsMax)
  let calls = 0

  const call = async ({ request, target, context, limitMs }: UpstreamCountParams) => {
    calls++
    try {
      const limit = Math.min(limitMs, deps.upstreamMs)
      return await deps.inference.countTokens({ context, targets: [target] }, request, limit)
    } finally {
      calls--
    }
  }
  return {
    async count(params) {
      const { target, measured, context, limitMs } = params
      if (target.upstream.quirks.tokenCounter === 'none') return null
      const model = modelKey(target)
      const key = `${model} ${contentKey(measured)}`
      const cached = cache.get(key)
      if (cached !== undefined) return cached
      if (limitMs < slowCountMinMs || calls >= callsMax) return null
      if (performance.now() < (pausedUntilMs.get(model) ?? 0)) return null
      const pause = (ms: number) => pausedUntilMs.set(model, performance.now() + ms)
      try {
        const tokens = await call(params)
        if (tokens === null) pause(deps.upstreamAbsentMs)
        if (tokens === null || !isCount(tokens)) return null
        cache.set(key, tokens)
        return tokens
      } catch (error) {
        // A refusal of this request says nothing about the next one.
        if (isUpstreamFailure(error) && !context.signal.aborted) pause(failurePauseMs)
        return null
      }
    },
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
