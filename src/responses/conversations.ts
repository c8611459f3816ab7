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
 * Conversations and their items. A stranger's is answered as if it did not exist: with undefined, or
 * false. What a request waits for fails with `service_unavailable`, soon, without the database.
 */
export type Conversations = {
  create(
    ownerId: string,
    given: { metadata: Metadata; items: readonly StoredItem[] },
  ): Promise<Conversation>
  find(ownerId: string, id: string): Promise<Conversation | undefined>
  setMetadata(ownerId: string, id: string, metadata: Metadata): Promise<Conversation | undefined>
  /** The items go as well; responses that were made in it stay. */
  remove(ownerId: string, id: string): Promise<boolean>
  /**
   * All items, oldest first, for a generation that goes on with them. Throws `invalid_request` of
   * code `conversation_full` where its own items would find no room.
   */
  items(ownerId: string, id: string): Promise<readonly StoredItem[] | undefined>
  /**
   * Adds items behind the last, and answers with them as they are kept: an item whose id is taken
   * in this conversation gets another. Throws `invalid_request` of code `conversation_full`.
   */
  addItems(
    ownerId: string,
    id: string,
    items: readonly StoredItem[],
  ): Promise<readonly StoredItem[] | undefined>
  /** Throws `invalid_request` where `after` is no item of the conversation. */
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
