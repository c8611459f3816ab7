import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { type AttemptDeps, attemptTargets, failureOf, type RetryPolicy } from './attempt.ts'
import { type CallKind, type CallRecord, OpenCallRecord } from './call-record.ts'
import type { EmbeddingInput, Embeddings } from './embeddings.ts'
import type { EventBatch, Usage } from './events.ts'
import type { GenerationRequest } from './request.ts'
import type { RerankInput, RerankResult } from './rerank.ts'
import { RunningGeneration } from './running-generation.ts'
import { noDescriptorLeft } from './transport/descriptor-wait.ts'
import type { Adapter, AdapterContext, Target } from './upstream.ts'

/** A call to a model, after its name was resolved to targets. */
export type ModelCall = {
  /** `context.signal` ends the call. */
  readonly context: RequestContext
  /** In order of preference, at least one. */
  readonly targets: readonly Target[]
}

export type GenerationJob = ModelCall & {
  readonly request: GenerationRequest
  /** Whether a byte was sent to the client; from then on nothing is retried. */
  readonly committed: () => boolean
  /** Whether the client reads the response only when it is complete, so that it may be held back. */
  readonly buffered?: boolean
}

/**
 * One generation: yields batches in the order of `grammar.ts`. A failure before the first output is
 * thrown as an `AppError`; after it, it is the last event. The first batch holds output, not only a
 * start. Wrappers around `Inference.generate` keep this contract.
 */
export type Generate = (job: GenerationJob) => EventBatches

/** The batches of one generation; nothing starts before the first pull. */
export type EventBatches = AsyncIterableIterator<EventBatch, void> & {
  return(): Promise<unknown>
}

export type InferenceDeps = AttemptDeps & {
  readonly limits: AttemptDeps['limits'] & {
    readonly streamsMax: number
    /** The most text of one generation, in characters: renderers hold all of it in memory. */
    readonly outputCharsMax: number
  }
  /** Generations that the file descriptors of this process allow; unlimited without it. */
  readonly streamsWithinDescriptors?: number
  readonly deadlines: {
    readonly firstEventMs: number
    readonly gapMs: number
    readonly totalMs: number
  }
  readonly retry: RetryPolicy
  /** Called exactly once for every admitted call. `job` is null unless it was a generation. */
  readonly onSettled: (record: CallRecord, job: GenerationJob | null) => void
}

/**
 * The one path from a resolved request to a model: admit, attempt targets until one succeeds, settle.
 * All calls throw an `AppError`.
 */
export type Inference = {
  readonly generate: Generate
  embed(call: ModelCall, model: string, input: EmbeddingInput): Promise<Embeddings>
  rerank(call: ModelCall, model: string, input: RerankInput): Promise<RerankResult>
  /** The upstream's own count at the first target, once, within `limitMs`; null without a counter. */
  countTokens(call: ModelCall, request: GenerationRequest, limitMs: number): Promise<number | null>
  /** Running generations. */
  running(): number
  /** Ends every running generation with this error, and refuses new ones. */
  stopAll(error: AppError): void
}

/** An admitted call: its cancellation, its record, and `settle`, which must be called once. */
export type OpenCall = {
  readonly controller: AbortController
  readonly record: OpenCallRecord
  settle(): void
}

export function createInference(deps: InferenceDeps): Inference {
  const { retry, deadlines, onSettled } = deps
  const admission = createAdmission(deps)

  /** Throws when the call is not admitted; such a call has no record. */
  const openCall = (
    kind: CallKind,
    { context, model, job }: { context: RequestContext; model: string; job: GenerationJob | null },
  ): OpenCall => {
    const { controller, release } = followSignal(context.signal)
    try {
      admission.enter(kind, controller)
    } catch (error) {
      release()
      throw error
    }
    const record = new OpenCallRecord(kind, context, model)
    return {
      controller,
      record,
      settle() {
        release()
        admission.leave(controller)
        onSettled(record.close(), job)
      },
    }
  }

  const callOnce = async <T>(
    kind: CallKind,
    { context, targets }: ModelCall,
    operation: {
      readonly model: string
      readonly retry?: RetryPolicy
      readonly limitMs?: number
      readonly run: (adapter: Adapter, context: AdapterContext) => Promise<T>
      readonly usageOf: (result: T) => Usage | null
    },
  ): Promise<T> => {
    const { controller, record, settle } = openCall(kind, { context, ...operation, job: null })
    const call = {
      context,
      targets,
      signal: controller.signal,
      record,
      retry: operation.retry ?? retry,
      mayRetry: () => true,
      limitMs: operation.limitMs ?? deadlines.firstEventMs,
    }
    try {
      const result = await attemptTargets(deps, call, async (attempt) => {
        const result = await operation.run(attempt.adapter, attempt.context)
        attempt.release()
        return result
      })
      record.complete(operation.usageOf(result))
      return result
    } catch (error) {
      const failure = failureOf(error)
      record.fail(failure)
      throw failure
    } finally {
      settle()
    }
  }

  return {
    generate: (job) => new RunningGeneration(deps, job, openCall),
    embed: (call, model, input) =>
      callOnce('embed', call, {
        model,
        run: (adapter, context) =>
          adapter.embed?.(input, context) ?? Promise.reject(unsupported(context, 'embeddings')),
        usageOf: ({ inputTokens }) => inputUsage(inputTokens),
      }),
    rerank: (call, model, input) =>
      callOnce('rerank', call, {
        model,
        run: (adapter, context) =>
          adapter.rerank?.(input, context) ?? Promise.reject(unsupported(context, 'reranking')),
        usageOf: ({ totalTokens }) => inputUsage(totalTokens),
      }),
    countTokens: ({ context, targets }, request, limitMs) =>
      callOnce(
        'count-tokens',
        { context, targets: targets.slice(0, 1) },
        {
          model: request.model,
          retry: { ...retry, retriesMax: 0 },
          limitMs,
          run: async (adapter, adapterContext) =>
            (await adapter.countTokens?.(request, adapterContext)) ?? null,
          usageOf: () => null,
        },
      ),
    running: admission.running,
    stopAll: admission.stopAll,
  }
}

/** Counts running calls. Only generations are limited, and ended by `stopAll`. */
function createAdmission({
  limits,
  streamsWithinDescriptors = Number.POSITIVE_INFINITY,
}: Pick<InferenceDeps, 'limits' | 'streamsWithinDescriptors'>) {
  const generations = new Set<AbortController>()
  let stopError: AppError | null = null
  return {
    enter(kind: CallKind, controller: AbortController) {
      if (kind !== 'generate') return
      if (stopError !== null) throw stopError
      if (generations.size >= limits.streamsMax) {
        throw new AppError('too_many_streams', 'The server runs too many generations; retry.', {
          retryAfterS: 1,
        })
      }
      if (generations.size >= streamsWithinDescriptors) throw noDescriptorLeft()
      generations.add(controller)
    },
    leave(controller: AbortController) {
      generations.delete(controller)
    },
    running: () => generations.size,
    stopAll(error: AppError) {
      stopError = error
      for (const controller of generations) controller.abort(error)
    },
  }
}

function unsupported({ upstream }: AdapterContext, operation: string): AppError {
  return new AppError(
    'upstream_refused',
    `The upstream "${upstream.name}" does not support ${operation}.`,
  )
}

function inputUsage(inputTokens: number | null): Usage | null {
  if (inputTokens === null) return null
  return {
    inputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    totalTokens: inputTokens,
  }
}
