import type { GenerationJob } from '#inference/inference.ts'
import type { CallRecord } from '#inference/open-call.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Target } from '#inference/upstream.ts'
import type { Log } from '#telemetry/log.ts'
import { Calibration, createUsageLearning } from './calibration.ts'
import { estimatedTokens, measureRequest, sumOf, TextCountCache } from './measured-text.ts'
import { type builtInTokenizer, countByTokenizer, createTokenizers } from './tokenizers.ts'
import {
  type CountedCall,
  createUpstreamCounts,
  modelKey,
  type UpstreamCountDeps,
} from './upstream-counts.ts'

/**
 * The source of a count, best first: the upstream's counter, the tokenizer file configured for the
 * model, the built-in tokenizer, or an estimate.
 */
type TokenTier = 'upstream' | 'tokenizer-file' | 'tokenizer' | 'estimate'

export type TokenCount = { readonly tokens: number; readonly tier: TokenTier }

export type TokenCounterDeps = Pick<UpstreamCountDeps, 'inference'> & {
  settings: Pick<UpstreamCountDeps, 'upstreamMs' | 'upstreamAbsentMs'> & {
    readonly tokenizer: typeof builtInTokenizer | 'none'
    readonly textsMax: number
    readonly calibrateEveryMs: number
    readonly calibratedModelsMax: number
  }
  log: Pick<Log, 'warn'>
}

export type TokenCounter = ReturnType<typeof createTokenCounter>

/** Counts the input tokens of requests without running a model. */
export function createTokenCounter(deps: TokenCounterDeps) {
  const { settings } = deps
  const cache = new TextCountCache(settings)
  const countByUpstream = createUpstreamCounts({ ...deps, ...settings })
  const tokenizers = createTokenizers(deps)
  const modelsMax = settings.calibratedModelsMax
  const calibrations = {
    tokenizer: new Calibration({ modelsMax }),
    estimate: new Calibration({ modelsMax }),
  }
  const everyMs = settings.calibrateEveryMs
  const learnUsage = createUsageLearning({ cache, tokenizers, calibrations, everyMs })

  return {
    /**
     * The input tokens of a request at the first of its targets, by the best source that responds
     * within about `limitMs`. Never rejects.
     */
    async count(
      request: GenerationRequest,
      targets: readonly Target[],
      options: { readonly limitMs: number } & CountedCall,
    ): Promise<TokenCount> {
      const deadlineMs = performance.now() + options.limitMs
      const measured = measureRequest(request, cache)
      const [target] = targets
      const result = (tier: TokenTier, tokens: number) => ({
        tokens: Math.ceil(tokens + measured.opaqueTokens),
        tier,
      })
      const tokenize = (tokenizer: string) =>
        countByTokenizer({ tokenizers, tokenizer }, measured, deadlineMs - performance.now())
      if (target !== undefined) {
        const tokens = await countByUpstream({ request, target, measured, ...options })
        if (tokens !== null) return { tokens, tier: 'upstream' }
      }
      if (target?.tokenizerFile !== undefined) {
        const counted = await tokenize(target.tokenizerFile)
        if (counted !== null) return result('tokenizer-file', sumOf(counted))
      }
      const model = target === undefined ? '' : modelKey(target)
      if (settings.tokenizer !== 'none') {
        const counted = await tokenize(settings.tokenizer)
        if (counted !== null) {
          return result('tokenizer', calibrations.tokenizer.correct(model, counted))
        }
      }
      return result('estimate', calibrations.estimate.correct(model, estimatedTokens(measured)))
    },

    /** Calibrates later counts with the usage that a generation reported. */
    learn({ outcome, usage, target }: CallRecord, { request }: Pick<GenerationJob, 'request'>) {
      if (outcome !== 'completed' || usage === null || target === null) return
      learnUsage(modelKey(target), request, usage.inputTokens)
    },

    close: () => tokenizers.close(),
  }
}
