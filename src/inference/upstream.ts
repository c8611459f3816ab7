import type { CancelSignal } from '#lib/cancellation.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { EmbeddingInput, Embeddings } from './embeddings.ts'
import type { EventBatch } from './events.ts'
import type { GenerationRequest } from './request.ts'
import type { RerankInput, RerankResult } from './rerank.ts'
import type { OpenedSpeech, SpeakInput } from './speak.ts'
import type { RequestIdentity, Transport } from './transport.ts'
import type { UpstreamKind } from './upstreams/index.ts'

/** A configured inference endpoint. */
export type Upstream = {
  readonly name: string
  readonly kind: UpstreamKind
  /** Without a trailing slash: `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string
  /** Sent as a bearer token, or as `keyHeader` says; never logged or in errors. */
  readonly key: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly quirks: UpstreamQuirks
}

/** Differences between servers of one protocol; the defaults suit vLLM, llama.cpp and Ollama. */
export type UpstreamQuirks = {
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  /** The fields for reasoning in the history. */
  readonly reasoningFields: readonly ('reasoning' | 'reasoning_content')[]
  /** The parameter for reasoning effort. */
  readonly reasoningEffort: 'reasoning_effort' | 'enable_thinking' | 'none'
  /** Whether `stream_options: {include_usage: true}` may be sent. */
  readonly streamUsage: boolean
  /** Whether responses whose events nobody needs may be requested without streaming. */
  readonly unstreamed: boolean
  /** Whether system messages are allowed after the first message. */
  readonly lateSystemMessages: boolean
  /** How a chat upstream continues a prefilled response, if it can. */
  readonly prefill: 'none' | 'automatic' | 'continue_final_message' | 'prefix'
  /** Whether the role `developer` is supported; otherwise it becomes `system`. */
  readonly developerRole: boolean
  /** Whether `strict: true` on tools and schemas is supported. */
  readonly strictTools: boolean
  /** Whether reasoning is part of the content as <think>…</think>. */
  readonly thinkTags: boolean
  /** Whether prompt_cache_key, safety_identifier and service_tier may be sent. */
  readonly vendorFields: boolean
  /** Whether content parts of type file may be sent. */
  readonly files: boolean
  /** The credential header of a messages upstream. */
  readonly keyHeader: 'x-api-key' | 'authorization'
  /** How reasoning is requested from a messages upstream: an effort, or a number of tokens. */
  readonly thinking: 'adaptive' | 'budget' | 'none'
  /** Whether a messages upstream supports `output_config.format`. */
  readonly outputFormat: boolean
  /** The limit sent to a messages upstream by default, since the protocol requires one. */
  readonly defaultMaxTokens: number
  /** The field for the texts to rerank. */
  readonly rerankFields: 'documents' | 'texts'
  /** The token counter of the upstream, if any; `native`: that of its protocol. */
  readonly tokenCounter: 'none' | 'native' | 'vllm' | 'llama.cpp'
}

/** An upstream, and the model's name there. */
export type Target = {
  readonly upstream: Upstream
  readonly model: string
  /** The path of the model's `tokenizer.json`, if configured. */
  readonly tokenizerFile?: string
  /** Targets of one tier share the load; lower ones are preferred. By default the place in the list. */
  readonly tier?: number
  /** Relative share of requests within the tier; 1 by default. */
  readonly weight?: number
  /** Tokens; null and undefined: unknown. */
  readonly contextWindow?: number | null
  /** A stream without output for this long also starts at another target of the model. */
  readonly hedgeMs?: number
  /** Whether it serves another model, for when the model itself cannot. */
  readonly isFallback?: boolean
  /** The name of that other model in the catalogue. */
  readonly modelId?: string
  /** The groups whose members may use it; absent: everyone. */
  readonly groups?: ReadonlySet<string>
}

export type UpstreamContext = {
  readonly upstream: Upstream
  readonly transport: Transport
  /** Absent in the gateway's own requests, such as those for lists of models. */
  readonly identity?: RequestIdentity | undefined
  /** Aborts the upstream request immediately. */
  readonly signal: CancelSignal
  readonly limits: AdapterLimits
}

export type AdapterContext = UpstreamContext & {
  /** The model's name at this upstream. */
  readonly model: string
  /** The request that this call serves. Its signal is not that of the call: use `signal`. */
  readonly requestContext: RequestContext
  /** Whether events are needed while the model generates; otherwise the response is requested whole. */
  readonly streamed: boolean
}

export type AdapterLimits = {
  /** The longest event of a stream. */
  readonly eventBytesMax: number
  /** The most held argument text of a generation's tool calls. */
  readonly toolArgumentCharsMax: number
}

export type UpstreamModel = {
  readonly id: string
  /** `generate` if the upstream does not tell. */
  readonly mode?: 'generate' | 'embed' | 'rerank' | 'speak'
  /** Of a model that speaks, if it tells. */
  readonly voices?: readonly string[]
  readonly aliases?: readonly string[]
  /** Unix seconds; null if unknown. */
  readonly created: number | null
  readonly ownedBy: string | null
  /** Tokens; null if unknown. */
  readonly contextWindow: number | null
  /** Such as `tools` and `reasoning`. */
  readonly capabilities?: readonly string[]
}

/**
 * Code that speaks one upstream protocol. Its operations throw an `AppError`.
 *
 * `generate` yields batches in the order of `events.ts`, starting with `generation-start` at the first
 * well-formed chunk of the upstream; an empty batch means that bytes arrived without an event. It may
 * throw at any time, also with an open block: `RunningGeneration` turns that into an HTTP status or an
 * `error` event, so adapters never yield `error`. It yields nothing after `finish`, and ends the upstream
 * request on `return()` or when `signal` aborts.
 */
export type Adapter = {
  generate(request: GenerationRequest, context: AdapterContext): AsyncIterable<EventBatch>
  listModels(context: UpstreamContext): Promise<readonly UpstreamModel[]>
  /**
   * The input tokens of a request as the upstream counts them, without running the model; null without
   * a counter, NaN for an invalid response.
   */
  countTokens?(request: GenerationRequest, context: AdapterContext): Promise<number | null>
  embed?(input: EmbeddingInput, context: AdapterContext): Promise<Embeddings>
  /** The results in any order. */
  rerank?(input: RerankInput, context: AdapterContext): Promise<RerankResult>
  /** Resolves with the first audio; the rest is read from the result. */
  speak?(input: SpeakInput, context: AdapterContext): Promise<OpenedSpeech>
}
