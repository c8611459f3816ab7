import type { GenerationJob, Target } from '#inference/generate.ts'
import type { GenerationRecord } from '#inference/record.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Log } from '#telemetry/log.ts'
import { createCalibration } from './calibration.ts'
import { sumOf } from './content-class.ts'
import { createKnownTexts } from './known-texts.ts'
import { byEstimate, measure } from './measured.ts'
import type { builtInTokenizer } from './thread-messages.ts'
import { countByTokenizer } from './tokenizer-counts.ts'
import { createTokenizers } from './tokenizers.ts'
import { createUpstreamCounts, modelKey, type UpstreamCountDeps } from './upstream-counts.ts'
import { createUsageLearning } from './usage-learning.ts'

/**
 * Who counted, from the best on: the upstream itself, the tokenizer file that the operator gave for
 * the model, the built-in tokenizer, or nobody: then it is estimated.
 */
type TokenTier = 'upstream' | 'tokenizer-file' | 'tokenizer' | 'estimate'

export type TokenCount = { readonly tokens: number; readonly tier: TokenTier }

/** Counts the input of a request without asking a model for anything. */
export type TokenCounter = {
  /**
   * The input tokens of a request at the first of its targets. It never rejects, and takes about
   * `patienceMs` at most; whoever has hardly any gets the best of what is at hand.
   */
  count(
    request: GenerationRequest,
    targets: readonly Target[],
    waiting: { readonly patienceMs: number; readonly signal?: AbortSignal },
  ): Promise<TokenCount>
  /** Learns from a generation that is over how far counts are off. */
  learn(record: GenerationRecord, job: Pick<GenerationJob, 'request' | 'targets'>): void
  close(): void
}

export type TokenCounterDeps = Pick<UpstreamCountDeps, 'adapters' | 'transport' | 'limits'> & {
  settings: Pick<UpstreamCountDeps, 'upstreamMs' | 'upstreamAbsentMs'> & {
    readonly tokenizer: typeof builtInTokenizer | 'none'
    readonly textsMax: number
    readonly calibrateEveryMs: number
    readonly calibratedModelsMax: number
  }
  log: Pick<Log, 'warn'>
}

export function createTokenCounter(deps: TokenCounterDeps): TokenCounter {
  const { settings } = deps
  const known = createKnownTexts(settings)
  const upstreams = createUpstreamCounts({ ...deps, ...settings })
  const tokenizers = createTokenizers(deps)
  const modelsMax = settings.calibratedModelsMax
  const calibrations = {
    tokenizer: createCalibration({ modelsMax }),
    estimate: createCalibration({ modelsMax }),
  }
  const everyMs = settings.calibrateEveryMs
  const learning = createUsageLearning({ known, tokenizers, calibrations, everyMs })

  return {
    async count(request, targets, waiting) {
      const endsAt = performance.now() + waiting.patienceMs
      const measured = measure(request, known)
      const [target] = targets
      const told = (tier: TokenTier, tokens: number) => ({
        tokens: Math.ceil(tokens + measured.opaqueTokens),
        tier,
      })
      const ask = (tokenizer: string) =>
        countByTokenizer({ tokenizers, tokenizer }, measured, endsAt - performance.now())
      if (target !== undefined) {
        const tokens = await upstreams.count({ request, target, measured }, waiting)
        if (tokens !== null) return { tokens, tier: 'upstream' }
      }
      if (target?.tokenizerFile !== undefined) {
        const counted = await ask(target.tokenizerFile)
        if (counted !== null) return told('tokenizer-file', sumOf(counted))
      }
      const model = target === undefined ? '' : modelKey(target)
      if (settings.tokenizer !== 'none') {
        const counted = await ask(settings.tokenizer)
        if (counted !== null) {
          return told('tokenizer', calibrations.tokenizer.correct(model, counted))
        }
      }
      return told('estimate', calibrations.estimate.correct(model, byEstimate(measured)))
    },

    learn(record, { request, targets }) {
      const target = targets.find(({ upstream }) => upstream.name === record.upstream)
      if (record.outcome !== 'completed' || record.usage === null || target === undefined) return
      learning.learn(modelKey(target), request, record.usage.inputTokens)
    },

    close: () => tokenizers.close(),
  }
}
