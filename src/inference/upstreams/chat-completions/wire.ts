/**
 * The fields of a chat-completions response that Sluice reads. Servers disagree about every one of
 * them, so a field is `unknown` until its reader has checked it. Any JSON object fits these types,
 * which makes `isRecord` their guard and costs nothing per chunk.
 */
export type ChatChunk = {
  readonly choices?: unknown
  readonly usage?: unknown
  readonly error?: unknown
  /** Source URLs, in the order of the markers [1], [2] … in the text. */
  readonly citations?: unknown
  /** Titles of the sources. */
  readonly search_results?: unknown
}

export type ChatChoice = {
  readonly index?: unknown
  /** The increment, in a stream. */
  readonly delta?: unknown
  /** The whole message, in a response that is not streamed and in the last chunk of some streams. */
  readonly message?: unknown
  readonly finish_reason?: unknown
  readonly logprobs?: unknown
  /** Some servers send it here. */
  readonly usage?: unknown
}

export type ChatDelta = {
  /** Text, or a list of `ChatContentPart`. */
  readonly content?: unknown
  readonly reasoning?: unknown
  readonly reasoning_content?: unknown
  readonly refusal?: unknown
  /** A list of `ChatToolCallPart`. */
  readonly tool_calls?: unknown
  /** The single call of older servers, before `tool_calls`: a `ChatFunctionPart`. */
  readonly function_call?: unknown
  /** A list of `ChatAnnotation`. */
  readonly annotations?: unknown
}

export type ChatContentPart = {
  readonly type?: unknown
  readonly text?: unknown
  readonly refusal?: unknown
  /** Text, or a list of text parts. */
  readonly thinking?: unknown
}

export type ChatToolCallPart = {
  readonly index?: unknown
  readonly id?: unknown
  readonly function?: unknown
}

export type ChatFunctionPart = {
  readonly name?: unknown
  /** JSON text, or the value itself from some servers. */
  readonly arguments?: unknown
}

export type ChatAnnotation = { readonly url_citation?: unknown }

export type ChatUrlCitation = {
  readonly url?: unknown
  readonly title?: unknown
  readonly start_index?: unknown
  readonly end_index?: unknown
}

export type ChatUsage = {
  readonly prompt_tokens?: unknown
  readonly completion_tokens?: unknown
  readonly total_tokens?: unknown
  readonly prompt_tokens_details?: unknown
  readonly completion_tokens_details?: unknown
  readonly prompt_cache_hit_tokens?: unknown
}

/** One message of a chat request. */
export type ChatMessage =
  | { role: 'system' | 'developer'; content: string }
  | { role: 'user'; content: string | ChatPart[] }
  | ({
      role: 'assistant'
      content: string
      tool_calls?: ChatToolCall[]
      prefix?: true
    } & ReasoningFields)
  | { role: 'tool'; tool_call_id: string; content: string }

export type ReasoningFields = { reasoning?: string; reasoning_content?: string }

export type ChatToolCall = {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}

export type ChatPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string; detail?: string } }
  | { type: 'file'; file: { file_data: string; filename?: string } }
