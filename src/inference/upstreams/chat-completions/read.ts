import type { Usage } from '#inference/events.ts'
import { readCount, readRecords } from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'

/** The fields of a delta that carry text. */
export type TextField = (typeof textFields)[number]

const textFields = ['content', 'reasoning_content', 'reasoning', 'thinking'] as const

/**
 * The text of a chunk without other content, or whose other content would change nothing if it was
 * repeated; null for every other chunk.
 */
export function readPlainText({ choices }: JsonObject): { field: TextField; text: string } | null {
  if (!Array.isArray(choices) || choices.length !== 1 || !isRecord(choices[0])) return null
  const { delta, message, finish_reason } = choices[0]
  if (isPresent(finish_reason) || isPresent(message) || !isRecord(delta)) return null
  if (otherFields.some((name) => isPresent(delta[name]))) return null
  const [field, ...others] = textFields.filter((name) => isPresent(delta[name]))
  const text = field === undefined ? undefined : delta[field]
  return field === undefined || others.length > 0 || typeof text !== 'string'
    ? null
    : { field, text }
}

/** The fields of a delta or message that hold other output. */
const otherFields = [
  ...['refusal', 'tool_calls', 'function_call', 'annotations', 'images', 'audio'],
  ...['reasoning_details', 'extra_content'],
]

const outputFields = [...textFields, ...otherFields]

/** Whether a chunk holds token counts and no output. */
export function isTrailer({ usage, choices }: JsonObject): boolean {
  if (!isRecord(usage) || readUsage(usage) === null) return false
  return readRecords(choices).every(
    ({ delta, message }) => !hasOutput(delta) && !hasOutput(message),
  )
}

function hasOutput(part: unknown): boolean {
  return isRecord(part) && outputFields.some((name) => isPresent(part[name]))
}

/** Neither absent nor empty. */
function isPresent(value: unknown): boolean {
  return Boolean(value) && !(Array.isArray(value) && value.length === 0)
}

type ChatFinishReason = 'stop' | 'length' | 'content-filter'

/** Finish reasons by which a server reports that it failed. */
const failureReasons: ReadonlySet<string> = new Set([
  'error',
  'abort',
  'network_error',
  'insufficient_system_resource',
])

const truncationReasons: Readonly<Record<string, ChatFinishReason>> = {
  length: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  content_filter: 'content-filter',
  safety: 'content-filter',
  sensitive: 'content-filter',
}

/** Null where the upstream failed. Any other value (stop, tool_calls, eos, unknown ones) is `stop`. */
export function readFinishReason(rawReason: string): ChatFinishReason | null {
  const lower = rawReason.toLowerCase()
  return failureReasons.has(lower) ? null : (truncationReasons[lower] ?? 'stop')
}

/**
 * The token counts of an upstream; null where it sent none. Output counts include the reasoning,
 * unless the total proves that a server counts it separately (xAI: 12 + 2 + 340 = 354).
 */
export function readUsage(wire: unknown): Usage | null {
  const usage = asRecord(wire)
  const inputTokens = readCount(usage['prompt_tokens'])
  const completionTokens = readCount(usage['completion_tokens'])
  if (inputTokens === null && completionTokens === null) return null
  const input = inputTokens ?? 0
  const completion = completionTokens ?? 0
  const inputDetails = asRecord(usage['prompt_tokens_details'])
  const outputDetails = asRecord(usage['completion_tokens_details'])
  const reasoningTokens = readCount(outputDetails['reasoning_tokens']) ?? 0
  const total = readCount(usage['total_tokens'])
  const isSeparate =
    reasoningTokens > completion ||
    (reasoningTokens > 0 && total === input + completion + reasoningTokens)
  const outputTokens = isSeparate ? completion + reasoningTokens : completion
  return {
    inputTokens: input,
    cachedTokens:
      readCount(inputDetails['cached_tokens']) ??
      readCount(usage['cached_tokens']) ??
      readCount(usage['prompt_cache_hit_tokens']) ??
      0,
    cacheWriteTokens: readCount(inputDetails['cache_write_tokens']) ?? 0,
    outputTokens,
    reasoningTokens,
    totalTokens: total ?? input + outputTokens,
  }
}
