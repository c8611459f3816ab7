type EndOfAnswer = 'stop' | 'length' | 'content-filter'

/** Ways of servers to say that they, and not the model, ended the answer. */
const failures: ReadonlySet<string> = new Set([
  'error',
  'abort',
  'network_error',
  'insufficient_system_resource',
])

const cuts: Readonly<Record<string, EndOfAnswer>> = {
  length: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  content_filter: 'content-filter',
  safety: 'content-filter',
  sensitive: 'content-filter',
}

/**
 * Why an answer ended, or null where the upstream failed. Any other word (stop, tool_calls, eos,
 * or one that we never heard) ends it properly.
 */
export function readFinishReason(word: string): EndOfAnswer | null {
  const lower = word.toLowerCase()
  return failures.has(lower) ? null : (cuts[lower] ?? 'stop')
}
