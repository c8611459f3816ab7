import { newId } from '#lib/id.ts'
import type { Page, PageRequest, StoredItem } from '#responses/response.ts'
import {
  type ConversationDatabase,
  conversationStore,
  type StoreOptions,
} from './conversation-store.ts'

export type Metadata = Readonly<Record<string, string>>

export type Conversation = {
  readonly id: string
  readonly createdAt: Date
  readonly metadata: Metadata
}

/**
 * Conversations and their items. A conversation of another owner does not exist: the result is
 * undefined or false. An unavailable database fails fast with `service_unavailable`.
 */
export type Conversations = {
  create(
    ownerId: string,
    given: { metadata: Metadata; items: readonly StoredItem[] },
  ): Promise<Conversation>
  find(ownerId: string, id: string): Promise<Conversation | undefined>
  setMetadata(ownerId: string, id: string, metadata: Metadata): Promise<Conversation | undefined>
  /** Deletes its items too; its responses stay. */
  remove(ownerId: string, id: string): Promise<boolean>
  /**
   * All items, oldest first, as context of a generation. Throws `invalid_request` with the code
   * `conversation_full` if no items can be added.
   */
  items(ownerId: string, id: string): Promise<readonly StoredItem[] | undefined>
  /**
   * Appends items and returns them as stored: an item whose id the conversation already holds gets
   * a new one. Throws `invalid_request` with the code `conversation_full`.
   */
  addItems(
    ownerId: string,
    id: string,
    items: readonly StoredItem[],
  ): Promise<readonly StoredItem[] | undefined>
  /** Throws `invalid_request` if `after` is not an item of the conversation. */
  listItems(ownerId: string, id: string, page: PageRequest): Promise<Page<StoredItem> | undefined>
  findItem(ownerId: string, id: string, itemId: string): Promise<StoredItem | undefined>
  removeItem(ownerId: string, id: string, itemId: string): Promise<boolean>
}

export function createConversations(
  database: ConversationDatabase,
  options: StoreOptions,
): Conversations {
  const { add, ...rest } = conversationStore(database, options)
  return {
    ...rest,
    async create(ownerId, { metadata, items }) {
      const created = { id: newId('conv_'), createdAt: options.now(), metadata }
      await add(ownerId, created, items)
      return created
    },
  }
}
