import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import type { Conversations } from '#responses/conversations.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { createSeals } from '#sealing/seals.ts'
import { quote } from '#surfaces/read-object.ts'
import {
  answersCall,
  namedIds,
  readAdd,
  readCreate,
  readItems,
  readUpdate,
  renderConversation,
  wholePage,
} from './conversation-schema.ts'
import { conversationOperations } from './description/conversation-operations.ts'
import { type HistorySources, noHistory } from './history.ts'
import { readInclude, readPage, renderPage } from './query.ts'
import { showItem } from './show.ts'

export type ConversationRoutesDeps = {
  auth: Auth
  conversations: Conversations
  findItems: HistorySources['findItems']
  sealer: Sealer
  config: Pick<Config, 'limits'>
}

const requires = 'can_access_api' satisfies Permission

/** Conversations and their items. What is another's is not found. */
export function conversationRoutes(deps: ConversationRoutesDeps) {
  const { auth, conversations, config } = deps
  return new Elysia({ name: 'conversations', prefix: '/v1/conversations' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal: { userId }, request }) => {
        const body = request.body === null ? {} : await readJsonBody(request, config.limits)
        const { items: given, metadata } = readCreate(body)
        const items = await readNewItems(deps, userId, { given, there: [] })
        return renderConversation(await conversations.create(userId, { metadata, items }))
      },
      { requires, parse: 'none', detail: conversationOperations.create },
    )
    .get(
      '/:id',
      async ({ params: { id }, principal: { userId } }) =>
        renderConversation(orAbsent(await conversations.find(userId, id), id)),
      { requires, detail: conversationOperations.show },
    )
    .post(
      '/:id',
      async ({ params: { id }, principal: { userId }, request }) => {
        const metadata = readUpdate(await readJsonBody(request, config.limits))
        const updated = await conversations.setMetadata(userId, id, metadata)
        return renderConversation(orAbsent(updated, id))
      },
      { requires, parse: 'none', detail: conversationOperations.update },
    )
    .delete(
      '/:id',
      async ({ params: { id }, principal: { userId } }) => {
        if (!(await conversations.remove(userId, id))) throw absent(id)
        return { id, object: 'conversation.deleted', deleted: true }
      },
      { requires, detail: conversationOperations.remove },
    )
    .use(itemRoutes(deps))
}

function itemRoutes(deps: ConversationRoutesDeps) {
  const { auth, conversations, config } = deps
  return new Elysia({ name: 'conversation-items', prefix: '/:id/items' })
    .use(guard(auth))
    .post(
      '/',
      async ({ params: { id }, principal: { userId }, request }) => {
        const given = readAdd(await readJsonBody(request, config.limits))
        const there = given.some(answersCall)
          ? orAbsent(await conversations.items(userId, id), id)
          : []
        const items = await readNewItems(deps, userId, { given, there })
        const added = orAbsent(await conversations.addItems(userId, id, items), id)
        return renderPage(wholePage(added), shown(request))
      },
      { requires, parse: 'none', detail: conversationOperations.addItems },
    )
    .get(
      '/',
      async ({ params: { id }, principal: { userId }, request }) => {
        const page = readPage(new URL(request.url).searchParams)
        const listed = orAbsent(await conversations.listItems(userId, id, page), id)
        return renderPage(listed, shown(request))
      },
      { requires, detail: conversationOperations.listItems },
    )
    .get(
      '/:itemId',
      async ({ params: { id, itemId }, principal: { userId }, request }) => {
        const found = await conversations.findItem(userId, id, itemId)
        if (found === undefined) throw absentItem(id, itemId)
        return shown(request)(found)
      },
      { requires, detail: conversationOperations.showItem },
    )
    .delete(
      '/:itemId',
      async ({ params: { id, itemId }, principal: { userId } }) => {
        const isRemoved = await conversations.removeItem(userId, id, itemId)
        if (!isRemoved) throw absentItem(id, itemId)
        return renderConversation(orAbsent(await conversations.find(userId, id), id))
      },
      { requires, detail: conversationOperations.removeItem },
    )
}

/** `there`: what the conversation holds, as far as the new items may answer it. */
async function readNewItems(
  { config, findItems, sealer }: ConversationRoutesDeps,
  ownerId: string,
  { given, there }: { given: readonly unknown[]; there: readonly StoredItem[] },
): Promise<readonly StoredItem[]> {
  const ids = namedIds(given)
  const named = ids.length === 0 ? noHistory.named : await findItems(ownerId, ids)
  return readItems(given, {
    history: { items: there, named },
    seals: createSeals(sealer, ownerId),
    itemsMax: config.limits.inputItemsMax,
  })
}

function shown(request: Request): (item: StoredItem) => StoredItem {
  const include = readInclude(new URL(request.url).searchParams)
  return (item) => showItem(item, include)
}

function orAbsent<T>(found: T | undefined, id: string): T {
  if (found === undefined) throw absent(id)
  return found
}

function absent(id: string): AppError {
  return new AppError('not_found', `Conversation with id ${quote(id)} not found.`, {
    param: 'conversation_id',
  })
}

function absentItem(id: string, itemId: string): AppError {
  const sentence = `Item with id ${quote(itemId)} not found in conversation ${quote(id)}.`
  return new AppError('not_found', sentence, { param: 'item_id' })
}
