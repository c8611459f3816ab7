/**
 * The fields of a chat-completions answer that we read. Servers disagree about every one of them,
 * so nothing is trusted: a field is `unknown` until the place that reads it has looked at it. Any
 * JSON object fits these types, which makes `isRecord` their guard and costs nothing per chunk.
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
  /** What is new, in a stream. */
  readonly delta?: unknown
  /** Everything at once, in a whole answer and in the last chunk of some streams. */
  readonly message?: unknown
  readonly finish_reason?: unknown
  readonly logprobs?: unknown
  /** Some servers put it here. */
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
  /** The one call of the time before `tool_calls`: a `ChatFunctionPart`. */
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
  /** JSON text, or from some servers the value itself. */
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

export type ChatTokenLogprob = {
  readonly token?: unknown
  readonly logprob?: unknown
  readonly bytes?: unknown
  readonly top_logprobs?: unknown
}
