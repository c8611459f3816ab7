import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { quote } from '#api/read-object.ts'
import { deletedResponse, pageResponse } from '#api/shapes.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Conversation, Conversations } from '#responses/conversation-store.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'
import { conversationFull } from '#surfaces/generation-errors.ts'
import { type HistorySources, noHistory, referencedIds } from './history.ts'
import {
  addItems,
  createConversation,
  isToolOutput,
  itemsPerRequestMax,
  parseNewItems,
  readAddItems,
  readCreateConversation,
  readUpdateConversation,
  updateConversation,
} from './parse-conversation.ts'
import { includeQuery, itemsQuery, orNotFound, renderPage } from './query.ts'
import { exampleIds, exampleInputItem } from './schema/examples.ts'
import { storedItem } from './schema/input-items.ts'
import { type ConversationObject, conversationObject } from './schema/response-object.ts'
import { showItem } from './show.ts'

type ConversationEndpointsDeps = {
  conversations: Conversations
  responses: Pick<HistorySources, 'findItems'>
  sealer: Sealer
  config: Pick<Config, 'limits'>
}

/** Conversations and their items. Those of other users are not found. */
export function conversationEndpoints(deps: ConversationEndpointsDeps): Endpoint[] {
  return [...objectEndpoints(deps), ...itemEndpoints(deps)]
}

function objectEndpoints(deps: ConversationEndpointsDeps): Endpoint[] {
  const { conversations } = deps
  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/conversations',
      summary: 'Create a conversation',
      description: `Pass its id as \`conversation\` of a request: its items are the context, and input and output are appended.
Conversations of other users are not found.`,
      body: jsonBody(createConversation, {
        example: { ...exampleItems, metadata: exampleConversation.metadata },
        isOptional: true,
        read: readCreateConversation,
      }),
      responses: { 200: conversationResponse('The conversation.') },
      errors: { invalid_request: invalidItems },
      async handle({ body, context }) {
        const { userId } = context.principal
        const { items: values = [], metadata = {} } = body ?? {}
        const items = await resolveItems(deps, userId, { values, existing: [] })
        return renderConversation(await conversations.create(userId, { metadata, items }))
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/conversations/:id',
      summary: 'Retrieve a conversation',
      params: idParam,
      responses: { 200: conversationResponse('The conversation, without its items.') },
      errors: { not_found: conversationNotFound },
      handle: async ({ params: { id }, context }) =>
        renderConversation(
          orNotFound('Conversation', await conversations.find(context.principal.userId, id), id),
        ),
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/conversations/:id',
      summary: 'Set the metadata of a conversation',
      params: idParam,
      body: jsonBody(updateConversation, {
        example: { metadata: exampleConversation.metadata },
        read: readUpdateConversation,
      }),
      responses: { 200: conversationResponse('The conversation.') },
      errors: { not_found: conversationNotFound, invalid_request: 'metadata is required.' },
      async handle({ params: { id }, body: metadata, context }) {
        const updated = await conversations.setMetadata(context.principal.userId, id, metadata)
        return renderConversation(orNotFound('Conversation', updated, id))
      },
    }),

    endpoint({
      ...common,
      method: 'DELETE',
      path: '/v1/conversations/:id',
      summary: 'Delete a conversation and its items',
      description: 'The responses of the conversation remain.',
      params: idParam,
      responses: {
        200: deletedResponse(
          'The conversation is deleted.',
          'conversation.deleted',
          exampleIds.conversation,
        ),
      },
      errors: { not_found: conversationNotFound },
      async handle({ params: { id }, context }) {
        orNotFound('Conversation', await conversations.remove(context.principal.userId, id), id)
        return { id, object: 'conversation.deleted', deleted: true }
      },
    }),
  ]
}

function itemEndpoints(deps: ConversationEndpointsDeps): Endpoint[] {
  const { conversations } = deps
  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/conversations/:id/items',
      summary: 'Add items to a conversation',
      description: 'Adds all items or none. The call of a tool output must precede it.',
      params: idParam,
      query: includeQuery,
      body: jsonBody(addItems, { example: exampleItems, read: readAddItems }),
      responses: { 200: pageResponse('The added items.', storedItem, exampleInputItem) },
      errors: { not_found: conversationNotFound, invalid_request: invalidItems },
      async handle({ params: { id }, query, body: values, context }) {
        const { userId } = context.principal
        const existing = values.some(isToolOutput)
          ? orNotFound('Conversation', await conversations.items(userId, id), id)
          : []
        const items = await resolveItems(deps, userId, { values, existing })
        const data = orNotFound('Conversation', await conversations.addItems(userId, id, items), id)
        return renderPage({ data, hasMore: false }, query.include)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/conversations/:id/items',
      summary: 'List the items of a conversation',
      params: idParam,
      query: itemsQuery,
      responses: { 200: pageResponse('A page of items.', storedItem, exampleInputItem) },
      errors: { not_found: conversationNotFound, invalid_request: 'order must be asc or desc.' },
      async handle({ params: { id }, query, context }) {
        const page = await conversations.listItems(context.principal.userId, id, query.page)
        return renderPage(orNotFound('Conversation', page, id), query.include)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/conversations/:id/items/:itemId',
      summary: 'Retrieve an item of a conversation',
      params: itemParams,
      query: includeQuery,
      responses: {
        200: { description: 'The item.', content: json(storedItem, exampleInputItem) },
      },
      errors: { not_found: itemNotFoundExample },
      async handle({ params: { id, itemId }, query, context }) {
        const item = await conversations.findItem(context.principal.userId, id, itemId)
        if (item === undefined) throw itemNotFound(id, itemId)
        return showItem(item, query.include)
      },
    }),

    endpoint({
      ...common,
      method: 'DELETE',
      path: '/v1/conversations/:id/items/:itemId',
      summary: 'Delete an item of a conversation',
      params: itemParams,
      responses: { 200: conversationResponse('The conversation without the item.') },
      errors: { not_found: itemNotFoundExample },
      async handle({ params: { id, itemId }, context }) {
        const { userId } = context.principal
        const isRemoved = await conversations.removeItem(userId, id, itemId)
        if (!isRemoved) throw itemNotFound(id, itemId)
        return renderConversation(
          orNotFound('Conversation', await conversations.find(userId, id), id),
        )
      },
    }),
  ]
}

/** `existing`: the items of the conversation, if new items may refer to their calls. */
async function resolveItems(
  { config, responses, sealer }: ConversationEndpointsDeps,
  ownerId: string,
  { values, existing }: { values: readonly unknown[]; existing: readonly StoredItem[] },
): Promise<readonly StoredItem[]> {
  const ids = referencedIds(values)
  const referable = ids.length === 0 ? noHistory.referable : await responses.findItems(ownerId, ids)
  return parseNewItems(values, {
    history: { items: existing, referable },
    seals: sealsOf(sealer, ownerId),
    itemsMax: config.limits.inputItemsMax,
  })
}

function renderConversation({ id, createdAt, metadata }: Conversation): ConversationObject {
  return { id, object: 'conversation', created_at: unixSeconds(createdAt), metadata }
}

function itemNotFound(id: string, itemId: string): AppError {
  const message = `Item with id ${quote(itemId)} not found in conversation ${quote(id)}.`
  return new AppError('not_found', message, { param: 'item_id' })
}

const common = { permission: 'can_access_api', tag: 'Conversations' } as const
const idParam = { id: 'The id of the conversation.' }
const itemParams = { ...idParam, itemId: 'The id of the item.' }

const exampleConversation = {
  id: exampleIds.conversation,
  object: 'conversation',
  created_at: 1_795_253_400,
  metadata: { topic: 'gates' },
}
const exampleItems = { items: [{ role: 'user', content: 'What is a sluice?' }] }

const conversationNotFound = `Conversation with id "${exampleIds.conversation}" not found.`
const itemNotFoundExample = `Item with id "${exampleInputItem.id}" not found in conversation "${exampleIds.conversation}".`
const invalidItems = [
  `items must be an array of 1 to ${itemsPerRequestMax} objects.`,
  conversationFull,
] as const

function conversationResponse(description: string) {
  return { description, content: json(conversationObject, exampleConversation) }
}
