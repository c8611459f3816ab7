import type { Target } from '#inference/generate.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Transport } from '#inference/transport.ts'
import type { AdapterLimits } from '#inference/upstream.ts'
import type { Adapters } from '#inference/upstreams/index.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'
import type { Measured } from './measured.ts'
import { hastyMs } from './tokenizer-counts.ts'

/** The counters that upstreams have themselves, where the configuration says that they have one. */
export type UpstreamCounts = {
  /** null: it has none, does not answer in time, or answers what cannot be. It never rejects. */
  count(question: Question, waiting: Waiting): Promise<number | null>
}

type Question = {
  readonly request: GenerationRequest
  readonly target: Target
  readonly measured: Measured
}

type Waiting = { readonly patienceMs: number; readonly signal?: AbortSignal }

export type UpstreamCountDeps = {
  adapters: Adapters
  transport: Transport
  limits: AdapterLimits
  /** How long an upstream may take. */
  upstreamMs: number
  /** How long a counter that is not there is not asked again. */
  upstreamAbsentMs: number
}

/** After a failure the next counts do without, so that not every one of them waits for nothing. */
const failureRestMs = 2_000
/** Questions at once, of one worker. */
const questionsMax = 64
const restingMax = 1_000
const answersMax = 2_000

export function createUpstreamCounts(deps: UpstreamCountDeps): UpstreamCounts {
  const answers = createLru<string, number>(answersMax)
  const restUntilMs = createLru<string, number>(restingMax)
  let questions = 0

  /** Throws what the upstream failed with; null where it has no counter. */
  const ask = async ({ request, target }: Question, { patienceMs, signal }: Waiting) => {
    const { upstream, model } = target
    const { adapters, transport, limits, upstreamMs } = deps
    const { controller, release } = followSignal(signal ?? new AbortController().signal)
    const timer = setTimeout(() => controller.abort(tooSlow()), Math.min(patienceMs, upstreamMs))
    const context = { upstream, model, transport, limits, signal: controller.signal }
    questions++
    try {
      return (await adapters[upstream.kind].countTokens?.(request, context)) ?? null
    } finally {
      questions--
      clearTimeout(timer)
      release()
    }
  }
  return {
    async count(question, waiting) {
      const { target, measured } = question
      if (target.upstream.quirks.tokenCounter === 'none') return null
      const name = modelKey(target)
      const key = `${name} ${contentKey(measured)}`
      const known = answers.get(key)
      if (known !== undefined) return known
      const mayAsk = waiting.patienceMs >= hastyMs && questions < questionsMax
      if (!mayAsk || performance.now() < (restUntilMs.get(name) ?? 0)) return null
      const rest = (ms: number) => restUntilMs.set(name, performance.now() + ms)
      try {
        const tokens = await ask(question, waiting)
        if (tokens === null) rest(deps.upstreamAbsentMs)
        if (tokens === null || !isCount(tokens)) return null
        answers.set(key, tokens)
        return tokens
      } catch (error) {
        // What this request alone was refused for says nothing about the next.
        if (isFailureOfUpstream(error) && waiting.signal?.aborted !== true) rest(failureRestMs)
        return null
      }
    },
  }
}

/** What a model is known by, whoever calls it by whatever name. */
export function modelKey({ upstream, model }: Target): string {
  return `${upstream.name}/${model}`
}

/** Stands for a request as far as it is counted. */
function contentKey({ texts, templateTokens, opaqueTokens }: Measured): string {
  const content = Bun.hash(texts.map(({ known }) => known.key).join()).toString(36)
  return `${content} ${templateTokens} ${opaqueTokens}`
}

/** No prompt is empty: templates put something around it. */
function isCount(tokens: number): boolean {
  return Number.isSafeInteger(tokens) && tokens > 0
}

function isFailureOfUpstream(error: unknown): boolean {
  return !(error instanceof AppError) || error.status >= 429
}

function tooSlow(): AppError {
  return new AppError('upstream_first_event_timeout', 'The upstream did not count in time.')
}
