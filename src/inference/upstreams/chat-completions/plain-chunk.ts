import { isRecord } from '#lib/json.ts'
import type { ChatChoice, ChatChunk, ChatDelta } from './wire.ts'

/** The fields of a delta that carry text. */
export type TextField = (typeof textFields)[number]

const textFields = ['content', 'reasoning_content', 'reasoning'] as const

/**
 * The text of a chunk that says nothing else, or nothing that would change anything if it was said
 * again; null of every other chunk.
 */
export function plainTextOf({ choices }: ChatChunk): { field: TextField; text: string } | null {
  if (!Array.isArray(choices) || choices.length !== 1 || !isRecord(choices[0])) return null
  const { delta, message, finish_reason: word }: ChatChoice = choices[0]
  if (isSomething(word) || isSomething(message) || !isRecord(delta) || saysMore(delta)) return null
  const [field, ...others] = textFields.filter((name) => isSomething(delta[name]))
  const text = field === undefined ? undefined : delta[field]
  return field === undefined || others.length > 0 || typeof text !== 'string'
    ? null
    : { field, text }
}

function saysMore({ refusal, tool_calls, function_call, annotations }: ChatDelta): boolean {
  return [refusal, tool_calls, function_call, annotations].some(isSomething)
}

/** Neither absent nor empty. */
function isSomething(value: unknown): boolean {
  return Boolean(value) && !(Array.isArray(value) && value.length === 0)
}
