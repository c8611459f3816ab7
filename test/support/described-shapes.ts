import { expect } from 'bun:test'
import { Kind, type TSchema } from '@sinclair/typebox'
// Registers the string formats, which are unknown otherwise.
import 'elysia'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type Checker, compileChecker } from '#lib/schema.ts'

/** Validates wire values against the schemas of the document. */

const checkers = new Map<TSchema, Checker<TSchema>>()

/**
 * Throws if a value does not conform to the schema, or has an undocumented field that the schema
 * does not explicitly allow.
 */
export function checkDescribed(schema: TSchema, value: unknown): void {
  // The variant of a union that applies to the value, for a specific error message.
  const variant = meant(schema, value)
  const checker = checkers.get(variant) ?? compileChecker(closed(variant))
  checkers.set(variant, checker)
  const fault = checker.firstError(value)
  if (fault !== null) throw new Error(`${fault.message} ${JSON.stringify(value)}`)
}

/** The variant of a union of objects with the same `type`. */
function meant(schema: TSchema, value: unknown): TSchema {
  const variants: readonly TSchema[] = Array.isArray(schema['anyOf']) ? schema['anyOf'] : []
  const type = asRecord(value)['type']
  const isMeant = ({ properties }: TSchema) => {
    const typeSchema = asRecord(asRecord(properties)['type'])
    const choices = Array.isArray(typeSchema['anyOf']) ? typeSchema['anyOf'] : [typeSchema]
    return choices.some((choice) => asRecord(choice)['const'] === type)
  }
  return type === undefined ? schema : (variants.find(isMeant) ?? schema)
}

function closed<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closed) as T
  if (!isRecord(schema)) return schema
  const { properties, allOf } = schema
  // Each part names some of the fields.
  if (allOf !== undefined) return schema
  const inner = Object.entries(schema).map(([field, value]) => [field, closed(value)])
  const isOpen = !isRecord(properties) || Object.keys(properties).length === 0
  return {
    ...(isOpen ? {} : { additionalProperties: false }),
    ...schema,
    ...Object.fromEntries(inner),
  }
}

/** The response schema of an operation. */
export function answerSchema(detail: unknown, status = 200, type = 'application/json'): TSchema {
  const { content } = asRecord(asRecord(asRecord(detail)['responses'])[status])
  const { schema } = asRecord(asRecord(content)[type])
  if (!isSchema(schema)) throw new Error(`nothing is said of ${type} of status ${status}`)
  return schema
}

function isSchema(value: unknown): value is TSchema {
  return isRecord(value) && Kind in value
}

/** The request body schema of an operation. */
export function bodySchema(detail: unknown): TSchema {
  const { schema } = bodyOf(detail)
  if (!isSchema(schema)) throw new Error('nothing is said of the body')
  return schema
}

export function bodyExample(detail: unknown): JsonObject {
  return asRecord(bodyOf(detail)['example'])
}

function bodyOf(detail: unknown): JsonObject {
  const { content } = asRecord(asRecord(detail)['requestBody'])
  return asRecord(asRecord(content)['application/json'])
}

/** Whether the schema accepts a value. */
export function isDescribed(schema: TSchema, value: unknown): boolean {
  try {
    checkDescribed(schema, value)
    return true
  } catch {
    return false
  }
}

/** Validates every example of an operation against its schema. */
export function checkExamples(detail: unknown): void {
  const { requestBody, responses } = asRecord(detail)
  const summary = String(asRecord(detail)['summary'])
  const contents = [requestBody, ...Object.values(asRecord(responses))].map(
    (part) => asRecord(part)['content'],
  )
  let seen = 0
  for (const content of contents) {
    for (const [type, media] of Object.entries(asRecord(content))) {
      const { schema, example } = asRecord(media)
      if (example === undefined) continue
      seen++
      const values = type === 'text/event-stream' ? readData(String(example)) : [example]
      expect(values, summary).not.toEqual([])
      if (!isSchema(schema)) throw new Error(`${summary} has an example of nothing`)
      for (const value of values) checkDescribed(schema, value)
    }
  }
  expect(seen, `${summary} has an example`).toBeGreaterThan(0)
}

function readData(wire: string): unknown[] {
  const lines = wire.split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line) => parseJson(line.slice('data: '.length)))
}
