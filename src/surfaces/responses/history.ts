import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { isTerminal, type StoredItem } from '#responses/response.ts'
import type { Chain } from '#responses/stored.ts'
import { quote } from '#surfaces/read-object.ts'
import { badField, createReader } from './read-object.ts'
import { stateFields } from './schema.ts'

/** What a request says about state, read before the rest, since the rest builds on it. */
export type StateRequest = {
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  /** The ids of the items that the input only names. */
  readonly references: readonly string[]
}

/** What stands before the input of a request, and the items that the input may name. */
export type History = {
  readonly items: readonly StoredItem[]
  readonly named: ReadonlyMap<string, StoredItem>
}

export const noHistory: History = { items: [], named: new Map() }

/** Where history is kept. All of it is asked for one owner; what is another's does not exist. */
export type HistorySources = {
  chain(ownerId: string, id: string): Promise<Chain | undefined>
  findItems(ownerId: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredItem>>
  conversationItems(ownerId: string, id: string): Promise<readonly StoredItem[] | undefined>
}

/** What one connection knows of responses that are stored nowhere. */
export type ConnectionMemory = {
  /** Input and output of a response and of all that it followed. */
  find(responseId: string): readonly StoredItem[] | undefined
}

const readState = createReader(stateFields)

export function readStateRequest(body: unknown): StateRequest {
  const fields = readState(body, '')
  const { previous_response_id: previousResponseId = null, conversation = null } = fields
  const conversationId = readConversationId(conversation)
  if (previousResponseId !== null && conversationId !== null) {
    throw badField('conversation', 'cannot be given together with previous_response_id')
  }
  return { previousResponseId, conversationId, references: readReferences(fields.input) }
}

export async function loadHistory(
  sources: HistorySources,
  from: { ownerId: string; state: StateRequest; memory: ConnectionMemory | undefined },
): Promise<History> {
  const items = await loadItems(sources, from)
  const known = new Map(items.map((item) => [item.id, item]))
  const missing = from.state.references.filter((id) => !known.has(id))
  if (missing.length === 0) return { items, named: known }
  const found = await sources.findItems(from.ownerId, [...new Set(missing)])
  return { items, named: new Map([...found, ...known]) }
}

async function loadItems(
  sources: HistorySources,
  { ownerId, state, memory }: Parameters<typeof loadHistory>[1],
): Promise<readonly StoredItem[]> {
  const { previousResponseId, conversationId } = state
  if (conversationId !== null) {
    const items = await sources.conversationItems(ownerId, conversationId)
    if (items !== undefined) return items
    throw new AppError('not_found', `Conversation with id ${quote(conversationId)} not found.`, {
      param: 'conversation',
    })
  }
  if (previousResponseId === null) return []
  const remembered = memory?.find(previousResponseId)
  if (remembered !== undefined) return remembered
  const chain = await sources.chain(ownerId, previousResponseId)
  if (chain === undefined) throw previousNotFound(previousResponseId)
  if (isTerminal(chain.status)) return chain.items
  throw new AppError(
    'conflict',
    `The response ${quote(previousResponseId)} is not finished; wait for its end, or cancel it.`,
    { code: 'previous_response_not_finished', param: 'previous_response_id' },
  )
}

function previousNotFound(id: string): AppError {
  return new AppError('invalid_request', `Previous response with id ${quote(id)} not found.`, {
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  })
}

function readConversationId(conversation: unknown): string | null {
  if (conversation === null || typeof conversation === 'string') return conversation
  const id = isRecord(conversation) ? conversation['id'] : undefined
  if (typeof id === 'string') return id
  throw badField('conversation', 'must be the id of a conversation or an object with its id')
}

function readReferences(input: unknown): readonly string[] {
  if (!Array.isArray(input)) return []
  return input.flatMap((item) => {
    const id = isReference(item) ? item['id'] : undefined
    return typeof id === 'string' ? [id] : []
  })
}

/** An item that only names another one; its type may be left out. */
export function isReference(item: unknown): item is { id?: unknown } {
  if (!isRecord(item)) return false
  const { type = null, role = null, content = null } = item
  if (type !== null) return type === 'item_reference'
  return role === null && content === null && 'id' in item
}
