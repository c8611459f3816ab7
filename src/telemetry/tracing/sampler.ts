import { isSampled, type TraceContext, traceIdOf } from '#lib/trace.ts'
import type { TracingConfig } from './config.ts'

/** Decides once per trace. */
export type Sampler = {
  /** Of a trace that begins here, by the random first part of its id. */
  sampleRoot(random: number): boolean
  /** Of a trace that a caller has begun. */
  sampleChild(parent: TraceContext): boolean
}

const randomMax = 2 ** 32

/**
 * `traceidratio` compares the first eight digits of the trace id with a bound, so that services with the
 * same ratio keep the same traces.
 */
export function createSampler({
  sampler,
  samplerArg,
}: Pick<TracingConfig, 'sampler' | 'samplerArg'>): Sampler {
  const [, parentBased, rule] = /^(parentbased_)?(.+)$/.exec(sampler) ?? []
  const share = rule === 'always_on' ? 1 : rule === 'always_off' ? 0 : samplerArg
  const bound = share * randomMax
  return {
    sampleRoot: (random) => random < bound,
    sampleChild: (parent) =>
      parentBased === undefined
        ? Number.parseInt(traceIdOf(parent).slice(0, 8), 16) < bound
        : isSampled(parent),
  }
}
