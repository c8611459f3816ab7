import type { MetricRegistry } from '#telemetry/metrics.ts'

export type GenerationMetrics = {
  generationEnded(ended: EndedGeneration): void
  /** `answer`: the status class (`2xx` … `5xx`), or `none`. */
  upstreamAnswered(upstream: string, answer: string): void
}

type EndedGeneration = {
  /** The model's name at the upstream. */
  readonly model: string
  /** Empty if no upstream was called. */
  readonly upstream: string
  readonly outcome: string
  readonly retries: number
  readonly usage: {
    readonly inputTokens: number
    readonly cachedTokens: number
    readonly outputTokens: number
  } | null
  readonly firstEventMs: number | null
  readonly durationMs: number
}

const durationBoundsS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
const firstEventBoundsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const millisPerSecond = 1_000

export function createGenerationMetrics(registry: MetricRegistry): GenerationMetrics {
  const of = ['upstream', 'model']
  const ended = registry.counter({
    name: 'sluice_generations_total',
    help: 'Finished generations.',
    labels: [...of, 'outcome'],
  })
  const retries = registry.counter({
    name: 'sluice_upstream_retries_total',
    help: 'Retries of generations, by the last upstream.',
    labels: ['upstream'],
  })
  const tokens = registry.counter({
    name: 'sluice_tokens_total',
    help: 'Tokens as upstreams report them; cached tokens are included in input.',
    labels: [...of, 'kind'],
  })
  const durations = registry.histogram({
    name: 'sluice_generation_duration_seconds',
    help: 'From the call to its end.',
    labels: of,
    bounds: durationBoundsS,
  })
  const firstEvents = registry.histogram({
    name: 'sluice_first_event_seconds',
    help: 'From the call to the first output.',
    labels: of,
    bounds: firstEventBoundsS,
  })
  const answers = registry.counter({
    name: 'sluice_upstream_requests_total',
    help: 'Requests to upstreams, by the class of the response status.',
    labels: ['upstream', 'answer'],
  })
  return {
    upstreamAnswered: (upstream, answer) => answers.add(1, upstream, answer),
    generationEnded({ model, upstream, outcome, usage, ...facts }) {
      ended.add(1, upstream, model, outcome)
      durations.observe(facts.durationMs / millisPerSecond, upstream, model)
      if (facts.firstEventMs !== null) {
        firstEvents.observe(facts.firstEventMs / millisPerSecond, upstream, model)
      }
      if (facts.retries > 0) retries.add(facts.retries, upstream)
      if (usage === null) return
      tokens.add(usage.inputTokens, upstream, model, 'input')
      tokens.add(usage.outputTokens, upstream, model, 'output')
      if (usage.cachedTokens > 0) tokens.add(usage.cachedTokens, upstream, model, 'cached')
    },
  }
}
