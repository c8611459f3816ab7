/**
 * The canonical request of a generation. Surfaces parse into it, adapters encode from it. It is
 * flat (items in order, as the Responses format has them), because merging items into turns is what
 * each upstream protocol does differently.
 */
export type GenerationRequest = {
  /** The name that the caller used; an adapter sends the target's own name instead. */
  model: string
  instructions: string | null
  items: readonly RequestItem[]
  /** Whether the last item is the beginning of the answer, which goes on from there. */
  prefilled?: boolean
  tools: readonly Tool[]
  toolChoice: ToolChoice
  parallelToolCalls: boolean
  sampling: Sampling
  format: OutputFormat
  verbosity: string | null
  /** `budgetTokens`: the most that a model may think, where the caller said so in tokens. */
  reasoning: { effort: string | null; summary: string | null; budgetTokens?: number }
  /** Forwarded only to upstreams that declare support for it. */
  promptCacheKey: string | null
  safetyIdentifier: string | null
  serviceTier: string | null
  /**
   * The request as its caller sent it, for an upstream of the same protocol, which gets it with as
   * little change as may be. Left out by whatever changes the request on the way.
   */
  origin?: RequestOrigin
}

export type RequestOrigin = {
  protocol: 'messages'
  body: Readonly<Record<string, unknown>>
  /** Those that an upstream may see, by their names in lower case. */
  headers: Readonly<Record<string, string>>
  /**
   * What we sealed into a signature of thinking in the body; null for a signature of somebody else.
   * Throws `invalid_encrypted_content` for one of ours that cannot be opened.
   */
  openSeal: (signature: string) => { payload: string | null; maker: string | null } | null
}

export type RequestItem =
  | { type: 'message'; role: Role; parts: readonly ContentPart[]; phase?: string }
  | ToolCallItem
  | {
      type: 'tool-result'
      callId: string
      form: 'function' | 'custom'
      parts: readonly ContentPart[]
      /** Whether the tool failed, where its caller says so. */
      isError?: boolean
    }
  | ReasoningItem

export type Role = 'user' | 'assistant' | 'system' | 'developer'

export type ToolCallItem = {
  type: 'tool-call'
  callId: string
  name: string
  namespace?: string
  form: 'function' | 'custom'
  /** JSON text of a function call, free text of a custom one. */
  arguments: string
}

/** Reasoning of an earlier turn, replayed by the caller. */
export type ReasoningItem = {
  type: 'reasoning'
  summary: readonly string[]
  text: string
  /** An opaque payload (encrypted content) that only its maker can open. */
  sealed?: string
  /** Its maker, as `reasoning-end` named it; absent where that is not known. */
  sealedBy?: string
}

export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'refusal'; text: string }
  /** `url` is an http(s) or a data URL. */
  | { type: 'image'; url: string; detail: string | null }
  | { type: 'file'; data: string | null; url: string | null; filename: string | null }

export type Tool = FunctionTool | CustomTool

/** What a tool is known by: one name may be given in several namespaces. */
export type ToolName = {
  readonly name: string
  readonly namespace?: string
}

export type FunctionTool = ToolName & {
  type: 'function'
  /** What the caller says of the namespace as a whole. */
  namespaceDescription?: string
  description: string | null
  /** A JSON Schema; null where the caller gave none. */
  parameters: Readonly<Record<string, unknown>> | null
  /** null: the caller did not say. */
  strict: boolean | null
}

export type CustomTool = ToolName & {
  type: 'custom'
  namespaceDescription?: string
  description: string | null
  grammar: { syntax: 'lark' | 'regex'; definition: string } | null
}

export type ToolChoice =
  | { type: 'none' | 'auto' | 'required' }
  | ({ type: 'tool'; form: 'function' | 'custom' } & ToolName)
  /** A bound, not a wish: a call of any other tool is no answer. */
  | { type: 'allowed'; mode: 'auto' | 'required'; tools: readonly ToolName[] }

export type OutputFormat =
  | { type: 'text' }
  | { type: 'json-object' }
  | {
      type: 'json-schema'
      name: string
      description: string | null
      schema: Readonly<Record<string, unknown>>
      strict: boolean | null
    }

/** null: the caller did not say, the upstream's default holds. */
export type Sampling = {
  temperature: number | null
  topP: number | null
  topK: number | null
  /** The answer ends before the first of these texts; empty: none. */
  stopSequences: readonly string[]
  presencePenalty: number | null
  frequencyPenalty: number | null
  maxOutputTokens: number | null
  /** How many alternatives per token; null: no logprobs at all. */
  topLogprobs: number | null
}

/** No sampling parameter is set. */
export const defaultSampling: Sampling = {
  temperature: null,
  topP: null,
  topK: null,
  stopSequences: [],
  presencePenalty: null,
  frequencyPenalty: null,
  maxOutputTokens: null,
  topLogprobs: null,
}

/** The options of a request that does not set any. */
export const defaultOptions = {
  toolChoice: { type: 'auto' },
  parallelToolCalls: true,
  sampling: defaultSampling,
  format: { type: 'text' },
  verbosity: null,
  reasoning: { effort: null, summary: null },
  promptCacheKey: null,
  safetyIdentifier: null,
  serviceTier: null,
} as const satisfies Partial<GenerationRequest>
