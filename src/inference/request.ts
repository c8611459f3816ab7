import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'

/**
 * The canonical request of a generation. Surfaces parse into it, adapters encode from it. It is
 * flat (items in order, as the Responses format has them), because merging items into turns is what
 * each upstream protocol does differently.
 */
export type GenerationRequest = {
  /** The name that the client sent; adapters send the target's model name instead. */
  model: string
  instructions: string | null
  items: readonly RequestItem[]
  /** Whether the last item is the beginning of the response, to be continued. */
  prefilled?: boolean
  tools: readonly Tool[]
  toolChoice: ToolChoice
  parallelToolCalls: boolean
  sampling: Sampling
  format: OutputFormat
  verbosity: string | null
  /** `budgetTokens`: the client's limit of reasoning tokens. */
  reasoning: { effort: string | null; summary: string | null; budgetTokens?: number }
  /** Forwarded only to upstreams that declare support for it. */
  promptCacheKey: string | null
  /** Of the Responses format, as sent. */
  promptCacheOptions?: JsonObject
  safetyIdentifier: string | null
  serviceTier: string | null
  /**
   * The original request, which an upstream of the same protocol receives with minimal changes. Code
   * that changes the request must remove it.
   */
  origin?: RequestOrigin
  /** Absent where the request has none, or where no target speaks the client's protocol. */
  native?: NativeParts
}

/** What only upstreams of the client's own protocol understand, forwarded as sent. */
export type NativeParts = {
  tools: readonly NativeTool[]
  /** Additional output that the client asked for. */
  include: readonly string[]
  /** The most calls of tools that the upstream runs; null: no limit. */
  toolCallsMax: number | null
}

/** A tool that its protocol knows by its type, such as a web search. */
export type NativeTool = Pick<FunctionTool, 'namespace' | 'namespaceDescription'> & {
  type: string
  value: JsonObject
}

export type RequestOrigin = {
  protocol: 'messages'
  body: Readonly<Record<string, unknown>>
  /** Headers that are forwarded, by lower-case name. */
  headers: Readonly<Record<string, string>>
  /** The stored files that the body names, by id. */
  files?: ReadonlyMap<string, InlineFile>
  /**
   * The payload that the gateway sealed into a thinking signature of the body; null for signatures of
   * others. Throws `invalid_encrypted_content` for a signature of the gateway that cannot be opened.
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
      /** Whether the client reported that the tool failed. */
      isError?: boolean
    }
  | ReasoningItem
  /** An item of a native tool, such as a web search; other protocols skip it. */
  | { type: 'native'; value: JsonObject }

export type Role = 'user' | 'assistant' | 'system' | 'developer'

export type ToolCallItem = {
  type: 'tool-call'
  callId: string
  name: string
  namespace?: string
  form: 'function' | 'custom'
  /** The model does not wait for its result, which may come later. */
  async?: true
  /** JSON text of a function call, free text of a custom one. */
  arguments: string
}

/** Reasoning of an earlier turn, replayed by the client. */
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
  | { type: 'image'; url: string; detail: string | null; stored?: StoredFile }
  | {
      type: 'file'
      data: string | null
      url: string | null
      filename: string | null
      stored?: StoredFile
    }

/** A file of the gateway. Its content replaces it before an adapter gets the request. */
export type StoredFile = {
  readonly id: string
  /** Where the request names it. */
  readonly path: string
}

/** The content of a stored file, or the text of one that upstreams do not take. */
export type InlineFile = { readonly mimeType: string } & (
  | { readonly base64: string }
  | { readonly text: string }
)

export type Tool = FunctionTool | CustomTool

/** Identifies a tool: a name may occur in several namespaces. */
export type ToolName = {
  readonly name: string
  readonly namespace?: string
}

/** `async`: the model goes on without the result of a call, which its client sends later. */
type ToolBase = ToolName & { namespaceDescription?: string; async?: true }

export type FunctionTool = ToolBase & {
  type: 'function'
  description: string | null
  /** A JSON Schema; null if absent. */
  parameters: Readonly<Record<string, unknown>> | null
  /** null: not specified. */
  strict: boolean | null
}

export type CustomTool = ToolBase & {
  type: 'custom'
  description: string | null
  grammar: { syntax: 'lark' | 'regex'; definition: string } | null
}

export type ToolChoice =
  | { type: 'none' | 'auto' | 'required' }
  | ({ type: 'tool'; form: 'function' | 'custom' } & ToolName)
  /** A native tool, as sent. */
  | { type: 'native'; value: JsonObject }
  /** A call of any other tool fails the generation. `native`: native tools, as sent. */
  | {
      type: 'allowed'
      mode: 'auto' | 'required'
      tools: readonly ToolName[]
      native?: readonly JsonObject[]
    }

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

/** null: not specified, the upstream's default applies. */
export type Sampling = {
  temperature: number | null
  topP: number | null
  topK: number | null
  /** The response ends before the first of these texts. */
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

/** Throws for a request that prefills the response, where the upstream cannot continue it. */
export function refusePrefill({ prefilled = false }: Pick<GenerationRequest, 'prefilled'>): void {
  if (!prefilled) return
  throw new AppError(
    'invalid_request',
    'This model cannot continue a prefilled response; the last message must be from the user.',
    { param: 'messages' },
  )
}
