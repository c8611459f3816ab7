import type { RequestContext } from '#lib/request-context.ts'
import type { EmbeddingInput, Embeddings } from './embeddings.ts'
import type { EventBatch } from './events.ts'
import type { GenerationRequest } from './request.ts'
import type { RerankInput, RerankResult } from './rerank.ts'
import type { Transport } from './transport.ts'
import type { UpstreamKind } from './upstreams/index.ts'

/** One configured endpoint that we call. Adapters read it, nobody changes it. */
export type Upstream = {
  readonly name: string
  readonly kind: UpstreamKind
  /** Without a slash at its end: `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string
  /** Sent as a bearer token, or as `keyHeader` says; never in a log or an error. */
  readonly key: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly quirks: UpstreamQuirks
}

/** What servers of one protocol disagree about; the defaults suit vLLM, llama.cpp and Ollama. */
export type UpstreamQuirks = {
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  /** Where the history carries reasoning back: under which field names. */
  readonly reasoningFields: readonly ('reasoning' | 'reasoning_content')[]
  /** How a reasoning effort is asked for. */
  readonly reasoningEffort: 'reasoning_effort' | 'enable_thinking' | 'none'
  /** Whether `stream_options: {include_usage: true}` may be sent. */
  readonly streamUsage: boolean
  /** Whether system texts after the first message stay where they are. */
  readonly lateSystemMessages: boolean
  /** How a chat upstream is asked to go on from the beginning of an answer, if it can. */
  readonly prefill: 'none' | 'automatic' | 'continue_final_message' | 'prefix'
  /** Whether the role `developer` is known; otherwise it becomes `system`. */
  readonly developerRole: boolean
  /** Whether `strict: true` on a tool or schema is enforced there, so that it may be sent. */
  readonly strictTools: boolean
  /** Whether reasoning comes inside the content as <think>…</think>. */
  readonly thinkTags: boolean
  /** Whether prompt_cache_key, safety_identifier and service_tier may be sent. */
  readonly vendorFields: boolean
  /** Whether content parts of type file may be sent. */
  readonly files: boolean
  /** How a messages upstream takes its credential. */
  readonly keyHeader: 'x-api-key' | 'authorization'
  /** How a messages upstream is asked to think: an effort, or a number of tokens. */
  readonly thinking: 'adaptive' | 'budget' | 'none'
  /** Whether a messages upstream holds answers to `output_config.format`. */
  readonly outputFormat: boolean
  /** What a messages upstream is told where the caller set no limit: the protocol demands one. */
  readonly defaultMaxTokens: number
  /** Under which name the texts to rerank are sent. */
  readonly rerankFields: 'documents' | 'texts'
  /** How the upstream can be asked what a prompt costs, if it can; `native`: as its protocol says. */
  readonly tokenCounter: 'none' | 'native' | 'vllm' | 'llama.cpp'
}

/** An upstream, and the model's name there. */
export type Target = {
  readonly upstream: Upstream
  readonly model: string
  /** The path of the model's `tokenizer.json`, if configured. */
  readonly tokenizerFile?: string
}

export type UpstreamContext = {
  readonly upstream: Upstream
  readonly transport: Transport
  /** Aborts the upstream request immediately. */
  readonly signal: AbortSignal
  readonly limits: AdapterLimits
}

export type AdapterContext = UpstreamContext & {
  /** The model's name at this upstream. */
  readonly model: string
  /** The request that this call serves. Its signal is not that of the call: use `signal`. */
  readonly requestContext: RequestContext
}

export type AdapterLimits = {
  /** The longest single event that we hold, in bytes. */
  readonly eventBytesMax: number
  /** The most argument text that we hold for one generation's tool calls, in characters. */
  readonly toolArgumentCharsMax: number
}

export type UpstreamModel = {
  readonly id: string
  /** Unix seconds, where the upstream tells it. */
  readonly created: number | null
  readonly ownedBy: string | null
  /** Tokens, where the upstream tells it. */
  readonly contextWindow: number | null
  /** Words such as `tools` or `reasoning`, where the upstream tells them. */
  readonly capabilities?: readonly string[]
}

/**
 * Code that speaks one upstream protocol.
 *
 * `generate` yields batches in the order of `grammar.ts`, beginning with `generation-start` at the
 * first well-formed chunk of the upstream; an empty batch says that bytes came without an event.
 * It fails by throwing an `AppError`, at any time, also with a block left open: `generate.ts` makes
 * an HTTP status or an `error` event of it, so an adapter never yields `error` itself. It yields
 * nothing after `finish`, and it ends the upstream request when its consumer stops (`return()`) or
 * when `signal` aborts.
 */
export type Adapter = {
  generate(request: GenerationRequest, context: AdapterContext): AsyncIterable<EventBatch>
  listModels(context: UpstreamContext): Promise<readonly UpstreamModel[]>
  /**
   * The input tokens of a request by the upstream's own count, which makes no model work; null where
   * the upstream has no counter. An answer that is no number is NaN. Fails as `generate` does.
   */
  countTokens?(request: GenerationRequest, context: AdapterContext): Promise<number | null>
  embed?(input: EmbeddingInput, context: AdapterContext): Promise<Embeddings>
  /** The results in any order. */
  rerank?(input: RerankInput, context: AdapterContext): Promise<RerankResult>
}
