import { Type } from '@sinclair/typebox'
import { object, optional } from '#api/request-schema.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import type { Metadata } from '#responses/conversation-store.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Seals } from '#sealing/seals.ts'
import type { History } from './history.ts'
import { parseMetadata } from './parse.ts'
import { parseItems } from './parse-items.ts'
import { readObject } from './read-object.ts'
import { inputItem } from './schema/input-items.ts'
import { metadata } from './schema/request.ts'

/** The request bodies of conversations. */

/** As OpenAI limits it. */
export const itemsPerRequestMax = 20

const items = Type.Array(inputItem, {
  maxItems: itemsPerRequestMax,
  description: `Up to ${itemsPerRequestMax} items. A referenced item is copied.`,
})

export const createConversation = object(
  { items: optional(items), metadata: optional(metadata) },
  { $id: 'CreateConversation' },
)
export const updateConversation = object(
  { metadata: Type.Union([metadata, Type.Null()]) },
  {
    $id: 'UpdateConversation',
    description: '`metadata` is required; null removes all of it.',
  },
)
export const addItems = object({ items: { ...items, minItems: 1 } }, { $id: 'AddItems' })

export function readCreateConversation(body: unknown): {
  items: readonly unknown[]
  metadata: Metadata
} {
  const { items: values = [], metadata: pairs = {} } = readObject(createConversation, body, '')
  return { items: values, metadata: parseMetadata(pairs) }
}

/** Null removes all metadata. */
export function readUpdateConversation(body: unknown): Metadata {
  if (isRecord(body) && body['metadata'] === null) return {}
  return parseMetadata(readObject(updateConversation, body, '').metadata)
}

export function readAddItems(body: unknown): readonly unknown[] {
  return readObject(addItems, body, '').items
}

/** Whether an item is the output of a call, which may be an existing item. */
export function isToolOutput(value: unknown): boolean {
  return isRecord(value) && String(value['type']).endsWith('_output')
}

/** Validates new items like those of an input, and returns them in the form that is stored. */
export function parseNewItems(
  values: readonly unknown[],
  context: { history: History; seals: Seals; itemsMax: number },
): readonly StoredItem[] {
  if (values.length === 0) return []
  try {
    return parseItems(values, context).stored
  } catch (error) {
    throw withItemsParam(error)
  }
}

/** The field is `input` in a request for a response, and `items` here. */
function withItemsParam(error: unknown): unknown {
  if (!(error instanceof AppError) || error.param === null) return error
  const rename = (text: string) => text.replace(/^input\b/, 'items')
  const { wireCode: code, param, cause } = error
  return new AppError(error.kind, rename(error.message), { param: rename(param), code, cause })
}
