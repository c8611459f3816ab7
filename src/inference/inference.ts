import { Deadlines } from '#lib/deadlines.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { type CallInput, estimateInput } from './call-estimate.ts'
import type { EmbeddingInput, Embeddings } from './embeddings.ts'
import { type EventBatch, type Usage, usageOfTokens } from './events.ts'
import { type CallKind, type CallRecord, OpenCall } from './open-call.ts'
import type { GenerationRequest } from './request.ts'
import type { RerankInput, RerankResult } from './rerank.ts'
import type { RetryPolicy } from './retry.ts'
import type { Router } from './routing/router.ts'
import { type Admission, type RunningCall, RunningGeneration } from './running-generation.ts'
import { readSpeech, type SpeakInput, type SpokenAudio } from './speak.ts'
import { noDescriptorLeft } from './transport/descriptor-wait.ts'
import type { Transport } from './transport.ts'
import type { Adapter, AdapterContext, AdapterLimits, Target } from './upstream.ts'
import type { Adapters } from './upstreams/index.ts'

/** A call to a model, after its name was resolved to targets. */
export type ModelCall = {
  /** `context.signal` ends the call. */
  readonly context: RequestContext
  /** In order of preference, at least one; targets of one tier share the load. */
  readonly targets: readonly Target[]
  /** The name in the catalogue, by which limits are kept; absent: that of the request. */
  readonly modelId?: string
  /**
   * Whether the call belongs to a request that was admitted before, such as a further turn of hosted
   * tools: it is not refused by limits, but its tokens count.
   */
  readonly continues?: boolean
  /** Of a generation. */
  readonly request?: GenerationRequest
  /** Of any other call that runs the model. */
  readonly input?: EmbeddingInput | RerankInput | SpeakInput
  /** The API of the request; absent: another one than those of generations. */
  readonly surface?: Surface
  /** The agent that the name of the request means. */
  readonly agentId?: string | null
  /** The stored response that the call is part of. */
  readonly responseId?: string | null
}

export type Surface = 'responses' | 'messages'

/** What an admitted call holds of its limits. */
export type Reservation = {
  /** Called exactly once, when the call has ended. */
  settle(record: CallRecord): void
}

/**
 * Applies limits to a call before it is queued or attempted; null: none apply. Throws or rejects with
 * an `AppError`; a promise only if another process has to be asked.
 */
export type Admit = (
  kind: CallKind,
  call: ModelCall,
  model: string,
  input: CallInput,
) => Reservation | null | Promise<Reservation | null>

export type GenerationJob = ModelCall & {
  readonly request: GenerationRequest
  /** Whether the client reads the response only when it is complete, so that it may be held back. */
  readonly buffered?: boolean
  /** Whether events are needed before the response is complete; otherwise upstreams need not stream. */
  readonly streamed?: boolean
  /**
   * For protocols in which the arguments of a tool call are an object rather than JSON text: a complete call
   * with anything else fails the generation, since clients would treat it as a call without arguments.
   */
  readonly objectArguments?: boolean
}

/**
 * One generation: yields batches in the order of `events.ts`. A failure before the first output is
 * thrown as an `AppError`; after it, it is the last event. The first batch holds output, not only a
 * start. Wrappers around `Inference.generate` keep this contract.
 */
export type Generate = (job: GenerationJob) => EventBatches

/** The batches of one generation; nothing starts before the first pull. */
export type EventBatches = AsyncIterableIterator<EventBatch, void> & {
  return(): Promise<unknown>
}

/** Fixed for each call when it starts. */
type InferenceSettings = {
  readonly limits: AdapterLimits & {
    readonly streamsMax: number
    /** The most text of one generation, in characters: renderers hold all of it in memory. */
    readonly outputCharsMax: number
  }
  readonly deadlines: {
    readonly firstEventMs: number
    readonly gapMs: number
    readonly totalMs: number
  }
  readonly retry: RetryPolicy
}

export type InferenceDeps = InferenceSettings & {
  readonly adapters: Adapters
  readonly transport: Transport
  /** Generations that the file descriptors of this process allow; unlimited without it. */
  readonly streamsWithinDescriptors?: number
  /** Limits of callers and models; absent: none. Token counts are free. */
  readonly admit?: Admit
  readonly router: Router
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
  /** Resolves with the first audio. The caller reads the rest, or ends it with `return`. */
  speak(call: ModelCall, model: string, input: SpeakInput): Promise<SpokenAudio>
  /** The upstream's own count at the first target, once, within `limitMs`; null without a counter. */
  countTokens(call: ModelCall, request: GenerationRequest, limitMs: number): Promise<number | null>
  /** Running generations. */
  running(): number
  /** The same, one by one. */
  runningCalls(): Iterable<RunningCall>
  /** The settings of calls that start from now on. */
  configure(settings: InferenceSettings): void
  /** Ends every running generation with this error, and refuses new ones. */
  stopAll(error: AppError): void
}

export function createInference(given: InferenceDeps): Inference {
  const { streamsWithinDescriptors = Number.POSITIVE_INFINITY } = given
  let deps = given
  let totalDeadlines = new Deadlines(deps.deadlines.totalMs)
  /** Running generations, each with the deadlines that contain its own. */
  const generations = new Map<RunningGeneration, Deadlines>()
  let stopError: AppError | null = null

  const admission: Admission = {
    enter(generation) {
      if (stopError !== null) throw stopError
      if (generations.size >= deps.limits.streamsMax) {
        throw new AppError('too_many_streams', 'The server runs too many generations; retry.', {
          retryAfterS: 1,
        })
      }
      if (generations.size >= streamsWithinDescriptors) throw noDescriptorLeft()
      generations.set(generation, totalDeadlines)
      totalDeadlines.add(generation)
    },
    leave(generation) {
      generations.get(generation)?.remove(generation)
      generations.delete(generation)
    },
  }

  const callOnce = async <T>(
    kind: CallKind,
    call: ModelCall,
    operation: {
      readonly model: string
      /** Absent: the call is free. */
      readonly input?: EmbeddingInput | RerankInput
      readonly retry?: RetryPolicy
      readonly limitMs?: number
      readonly run: (adapter: Adapter, context: AdapterContext) => Promise<T>
      readonly usageOf: (result: T) => Usage | null
    },
  ): Promise<T> => {
    const current = deps
    const { retry, deadlines } = current
    const options = { retry, limitMs: deadlines.firstEventMs, streamed: true, ...operation }
    const { model, input } = operation
    const admitted = input === undefined ? null : current.admit?.(kind, call, model, input)
    const reservation = admitted instanceof Promise ? await admitted : admitted
    const open = new OpenCall(kind, model, input === undefined ? call : { ...call, input })
    open.reservation = reservation ?? null
    try {
      const result = await open.attempt(current, options, operation.run)
      open.complete(operation.usageOf(result))
      return result
    } catch (error) {
      throw open.fail(error)
    } finally {
      current.onSettled(open.close(), null)
    }
  }

  return {
    generate: (job) => new RunningGeneration(deps, job, admission),
    embed: (call, model, input) =>
      callOnce('embed', call, {
        model,
        input,
        run: (adapter, context) =>
          adapter.embed?.(input, context) ?? Promise.reject(unsupported(context, 'embeddings')),
        usageOf: ({ inputTokens }) => inputUsage(inputTokens, input),
      }),
    rerank: (call, model, input) =>
      callOnce('rerank', call, {
        model,
        input,
        run: (adapter, context) =>
          adapter.rerank?.(input, context) ?? Promise.reject(unsupported(context, 'reranking')),
        usageOf: ({ totalTokens }) => inputUsage(totalTokens, input),
      }),
    async speak(given, model, input) {
      const current = deps
      const { retry, deadlines } = current
      const call = { ...given, input }
      const admitted = current.admit?.('speak', call, model, input)
      const reservation = admitted instanceof Promise ? await admitted : admitted
      const open = new OpenCall('speak', model, call)
      open.reservation = reservation ?? null
      const settle = () => current.onSettled(open.close(), null)
      const options = { retry, limitMs: deadlines.firstEventMs, streamed: true }
      try {
        const opened = await open.attempt(
          current,
          options,
          (adapter, context) =>
            adapter.speak?.(input, context) ?? Promise.reject(unsupported(context, 'speech')),
        )
        return readSpeech(open, opened, { input, deadlines, settle })
      } catch (error) {
        const failure = open.fail(error)
        settle()
        throw failure
      }
    },
    countTokens: (call, request, limitMs) =>
      callOnce(
        'count-tokens',
        { ...call, targets: call.targets.slice(0, 1) },
        {
          model: request.model,
          retry: { ...deps.retry, retriesMax: 0 },
          limitMs,
          run: async (adapter, adapterContext) =>
            (await adapter.countTokens?.(request, adapterContext)) ?? null,
          usageOf: () => null,
        },
      ),
    running: () => generations.size,
    *runningCalls() {
      for (const generation of generations.keys()) {
        const call = generation.observe()
        if (call !== null) yield call
      }
    },
    configure({ limits, deadlines, retry }) {
      deps = { ...given, limits, deadlines, retry }
      totalDeadlines = new Deadlines(deadlines.totalMs)
    },
    stopAll(error) {
      stopError = error
      for (const generation of generations.keys()) generation.abort(error)
    },
  }
}

function unsupported({ upstream }: AdapterContext, operation: string): AppError {
  return new AppError(
    'upstream_refused',
    `The upstream "${upstream.name}" does not support ${operation}.`,
  )
}

/** Of calls that charge input only. */
function inputUsage(reported: number | null, input: EmbeddingInput | RerankInput): Usage {
  if (reported !== null) return usageOfTokens(reported, 0)
  return { ...usageOfTokens(estimateInput(input), 0), estimated: true }
}
