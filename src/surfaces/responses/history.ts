import { quote } from '#api/read-object.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { isTerminal, type StoredItem } from '#responses/response.ts'
import type { Chain, ResponseHead } from '#responses/stored.ts'
import type { ParsedCreate } from './parse.ts'
import { invalidField, readObject } from './read-object.ts'
import { historyFields } from './schema/request.ts'

/** Which history a request continues. */
export type HistoryRequest = {
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  /** The ids of the items that the input refers to. */
  readonly references: readonly string[]
}

/** The items before the input of a request, and the items that the input may refer to, by id. */
export type History = {
  readonly items: readonly StoredItem[]
  readonly referable: ReadonlyMap<string, StoredItem>
}

export const noHistory: History = { items: [], referable: new Map() }

/** Where history is stored. Items of other owners are not found. */
export type HistorySources = {
  chain(ownerId: string, id: string): Promise<Chain | undefined>
  findItems(ownerId: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredItem>>
  conversationItems(ownerId: string, id: string): Promise<readonly StoredItem[] | undefined>
}

/** The unstored responses of a connection. */
export type ConnectionMemory = {
  /** The input and output of a response and of its predecessors. */
  find(responseId: string): readonly StoredItem[] | undefined
}

export function readHistoryRequest(body: unknown): HistoryRequest {
  const { previous_response_id: previousResponseId = null, conversation } = readObject(
    historyFields,
    body,
    '',
  )
  const conversationId = readConversationId(conversation)
  if (previousResponseId !== null && conversationId !== null) {
    throw invalidField('conversation', 'cannot be combined with previous_response_id')
  }
  return { previousResponseId, conversationId, references: referencedIds(asRecord(body)['input']) }
}

/** Whether a request continues anything; most send all of their input. */
export function refersToHistory(request: HistoryRequest): boolean {
  const { previousResponseId, conversationId, references } = request
  return previousResponseId !== null || conversationId !== null || references.length > 0
}

export async function loadHistory(
  sources: HistorySources,
  from: { ownerId: string; request: HistoryRequest; memory: ConnectionMemory | undefined },
): Promise<History> {
  const { references } = from.request
  const items = await loadItems(sources, from)
  const known = new Map(items.map((item) => [item.id, item]))
  const missing = references.filter((id) => !known.has(id))
  if (missing.length === 0) return { items, referable: known }
  const found = await sources.findItems(from.ownerId, [...new Set(missing)])
  return { items, referable: new Map([...found, ...known]) }
}

async function loadItems(
  sources: HistorySources,
  { ownerId, request, memory }: Parameters<typeof loadHistory>[1],
): Promise<readonly StoredItem[]> {
  const { previousResponseId, conversationId } = request
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
    `The response ${quote(previousResponseId)} is not finished; wait for it to end, or cancel it.`,
    { code: 'previous_response_not_finished', param: 'previous_response_id', retryAfterS: 1 },
  )
}

function previousNotFound(id: string): AppError {
  return new AppError('invalid_request', `Previous response with id ${quote(id)} not found.`, {
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  })
}

function readConversationId(conversation: string | JsonObject | undefined): string | null {
  if (conversation === undefined) return null
  const id = typeof conversation === 'string' ? conversation : conversation['id']
  if (typeof id === 'string') return id
  throw invalidField('conversation', 'must be the id of a conversation or an object with its id')
}

/** The ids of the items that input items refer to. */
export function referencedIds(input: unknown): readonly string[] {
  if (!Array.isArray(input)) return []
  return input.flatMap((item) => {
    const id = isReference(item) ? item['id'] : undefined
    return typeof id === 'string' ? [id] : []
  })
}

/** Whether an item is an `item_reference`, whose type is optional. */
export function isReference(item: unknown): item is { id?: unknown } {
  if (!isRecord(item)) return false
  const { type = null, role = null, content = null } = item
  if (type !== null) return type === 'item_reference'
  return role === null && content === null && 'id' in item
}

type Link = Pick<ResponseHead, 'previousResponseId' | 'input'> & { history: History }

/**
 * Links a response to its predecessors. A predecessor that is only in the memory of the connection
 * becomes part of the input of a stored response, whose chain would have a gap otherwise.
 */
export function linkHistory(
  { echo, storedInput }: Pick<ParsedCreate, 'echo' | 'storedInput'>,
  history: History,
  { historyRequest, isInMemory }: { historyRequest: HistoryRequest; isInMemory: boolean },
): Link {
  const { previousResponseId } = historyRequest
  if (!echo.store || !isInMemory) return { previousResponseId, input: storedInput, history }
  return {
    previousResponseId: null,
    input: [...history.items, ...storedInput],
    history: { ...history, items: [] },
  }
}
