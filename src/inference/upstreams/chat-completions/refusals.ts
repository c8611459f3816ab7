import { refusalText } from '#inference/upstream-error.ts'
import { readRecords } from '#inference/upstream-fields.ts'
import type { AppError } from '#lib/errors.ts'
import { type JsonObject, omitFields } from '#lib/json.ts'
import { createLru } from '#lib/lru.ts'

/**
 * Fields that most servers accept or ignore, and strict ones refuse (Groq and Mistral
 * `reasoning_content`, OpenAI `top_k`). Which ones a target refuses is learned from its first refusal.
 */
const optionalFields = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'extra_content',
  'top_k',
]

/** Targets whose refusals are known. */
const targetsMax = 1_024
const refusals = createLru<string, ReadonlySet<string>>(targetsMax)

const none: ReadonlySet<string> = new Set()

/** The fields that a target is known to refuse. */
export function refusedFields(targetName: string): ReadonlySet<string> {
  return refusals.get(targetName) ?? none
}

export function learnRefusal(targetName: string, fields: ReadonlySet<string>): void {
  refusals.set(targetName, fields)
}

/** The optional fields of a request that an error names; null if it names none. */
export function readRefusal(error: AppError, body: JsonObject): string[] | null {
  if (error.kind !== 'invalid_request') return null
  const text = refusalText(error)
  const records = recordsWithFields(body)
  const named = optionalFields.filter(
    (name) =>
      records.some((record) => record[name] !== undefined) &&
      new RegExp(`(?<!\\w)${name}(?!\\w)`).test(text),
  )
  return named.length === 0 ? null : named
}

/** The request without these fields. */
export function withoutFields(body: JsonObject, fields: ReadonlySet<string>): JsonObject {
  if (fields.size === 0) return body
  const names = [...fields]
  const drop = (record: JsonObject) => omitFields(record, names)
  const messages = readRecords(body['messages']).map((message) => {
    const calls = readRecords(message['tool_calls']).map(drop)
    return { ...drop(message), ...(calls.length === 0 ? {} : { tool_calls: calls }) }
  })
  return { ...drop(body), messages }
}

/** The request, its messages and their calls. */
function recordsWithFields(body: JsonObject): JsonObject[] {
  const messages = readRecords(body['messages'])
  return [body, ...messages, ...messages.flatMap((message) => readRecords(message['tool_calls']))]
}
