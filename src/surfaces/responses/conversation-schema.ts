import { Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Conversation, Metadata } from '#responses/conversations.ts'
import type { Page, StoredItem } from '#responses/response.ts'
import type { Seals } from '#sealing/seals.ts'
import type { ConversationObject } from './description/response-object.ts'
import { type History, isReference } from './history.ts'
import { parseMetadata } from './parse.ts'
import { parseItems } from './parse-items.ts'
import { badField, createReader } from './read-object.ts'

const array = () => Type.Array(Type.Unknown(), { description: 'an array of items' })
const object = () => Type.Object({}, { description: 'an object', additionalProperties: true })

export const createBody = Type.Object({
  items: Type.Optional(array()),
  metadata: Type.Optional(object()),
})
export const updateBody = Type.Object({ metadata: Type.Optional(object()) })
export const addBody = Type.Object({ items: array() })

const readCreateBody = createReader(createBody)
const readUpdateBody = createReader(updateBody)
const readAddBody = createReader(addBody)

/** As OpenAI documents it. */
export const itemsPerRequestMax = 20

export function readCreate(body: unknown): { items: readonly unknown[]; metadata: Metadata } {
  const { items = [], metadata = {} } = readCreateBody(body, '')
  return { items: refuseMany(items), metadata: parseMetadata(metadata) }
}

/** Null takes all metadata away. */
export function readUpdate(body: unknown): Metadata {
  const { metadata = {} } = readUpdateBody(body, '')
  if (isRecord(body) && body['metadata'] === undefined) throw badField('metadata', 'is required')
  return parseMetadata(metadata)
}

export function readAdd(body: unknown): readonly unknown[] {
  const { items } = readAddBody(body, '')
  if (items.length === 0) throw badField('items', 'must not be empty')
  return refuseMany(items)
}

function refuseMany(items: readonly unknown[]): readonly unknown[] {
  if (items.length <= itemsPerRequestMax) return items
  throw badField('items', `must not have more than ${itemsPerRequestMax} items`)
}

/** The ids of items that are only named, and are to be copied. */
export function namedIds(items: readonly unknown[]): readonly string[] {
  return items.flatMap((item) =>
    isReference(item) && typeof item.id === 'string' ? [item.id] : [],
  )
}

/** Whether an item answers a call, which may be among the items that are there. */
export function answersCall(item: unknown): boolean {
  return isRecord(item) && String(item['type']).endsWith('_output')
}

/** Items as they are kept; they are held to what an input is held to. */
export function readItems(
  items: readonly unknown[],
  given: { history: History; seals: Seals; itemsMax: number },
): readonly StoredItem[] {
  if (items.length === 0) return []
  try {
    return parseItems(items, given).stored
  } catch (error) {
    throw aboutItems(error)
  }
}

/** What is called `input` in a request for a response is `items` here. */
function aboutItems(error: unknown): unknown {
  if (!(error instanceof AppError) || error.param === null) return error
  const rename = (text: string) => text.replace(/^input\b/, 'items')
  const { wireCode: code, param, cause } = error
  return new AppError(error.kind, rename(error.message), {
    param: rename(param),
    code,
    cause,
  })
}

export function renderConversation({ id, createdAt, metadata }: Conversation): ConversationObject {
  return {
    id,
    object: 'conversation',
    created_at: unixSeconds(createdAt),
    metadata,
  }
}

export function wholePage(items: readonly StoredItem[]): Page<StoredItem> {
  return { data: items, hasMore: false }
}
