import { Type } from '@sinclair/typebox'
import { describeObject } from '#api/described.ts'
import type { Errors } from '#api/endpoint.ts'
import { deleted, listOf } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import {
  addBody,
  createBody,
  itemsPerRequestMax,
  updateBody,
} from '#surfaces/responses/conversation-schema.ts'
import { inputItem, keptItem } from './input-items.ts'
import { metadata } from './request.ts'
import { conversationObject } from './response-object.ts'
import { sampleIds } from './samples.ts'
import { itemsQuery, sampleKeptItem } from './stored-operations.ts'

const tag = 'Conversations'

const id = sampleIds.conversation
const path = { id: 'The id of the conversation.' }
const itemPath = { ...path, itemId: 'The id of the item.' }

const newItems = (minItems: number) =>
  Type.Array(inputItem, {
    minItems,
    maxItems: itemsPerRequestMax,
    description: `Up to ${itemsPerRequestMax} at a time. One that only names another is copied.`,
  })
const createConversation = describeObject(
  createBody,
  { items: newItems(0), metadata },
  { $id: 'CreateConversation' },
)
const updateConversation = describeObject(
  updateBody,
  { metadata },
  {
    $id: 'UpdateConversation',
    description: '`metadata` has to be there; null takes all of it away.',
    required: ['metadata'],
  },
)
const addItems = describeObject(addBody, { items: newItems(1) }, { $id: 'AddItems' })

const sample = {
  id,
  object: 'conversation',
  created_at: 1_795_253_400,
  metadata: { topic: 'gates' },
}
const samplePage = {
  object: 'list',
  data: [sampleKeptItem],
  first_id: sampleKeptItem.id,
  last_id: sampleKeptItem.id,
  has_more: false,
}
const asked = { items: [{ role: 'user', content: 'What is a sluice?' }] }

const shown = (description: string) => ({ description, content: json(conversationObject, sample) })
const page = (description: string) => ({ description, content: json(listOf(keptItem), samplePage) })

const absent: Errors = { not_found: `Conversation with id "${id}" not found.` }
const absentItem: Errors = {
  not_found: `Item with id "${sampleKeptItem.id}" not found in conversation "${id}".`,
}
const badItems: Errors = {
  invalid_request: [
    `items must not have more than ${itemsPerRequestMax} items.`,
    {
      code: 'conversation_full',
      message:
        'A conversation may hold 10000 items and 67108864 bytes; this one is full. Delete some of its items, or begin another one.',
    },
  ],
}

export const conversationOperations = {
  create: operation({
    tag,
    summary: 'Create a conversation',
    description: `Name it as \`conversation\` of a request: its items are the context, and input and output are added to it.
What is another user's is not found.`,
    body: {
      content: json(createConversation, { ...asked, metadata: sample.metadata }),
      isOptional: true,
    },
    answers: { 200: shown('The conversation.') },
    errors: badItems,
  }),
  show: operation({
    tag,
    summary: 'Show a conversation',
    path,
    answers: { 200: shown('The conversation, without its items.') },
    errors: absent,
  }),
  update: operation({
    tag,
    summary: 'Set the metadata of a conversation',
    path,
    body: { content: json(updateConversation, { metadata: sample.metadata }) },
    answers: { 200: shown('The conversation.') },
    errors: { ...absent, invalid_request: 'metadata is required.' },
  }),
  remove: operation({
    tag,
    summary: 'Delete a conversation and its items',
    description: 'Responses that were made in it stay.',
    path,
    answers: {
      200: {
        description: 'It is gone.',
        content: json(deleted('conversation.deleted'), {
          id,
          object: 'conversation.deleted',
          deleted: true,
        }),
      },
    },
    errors: absent,
  }),
  addItems: operation({
    tag,
    summary: 'Add items to a conversation',
    description: 'All of them or none. An output of a tool needs its call, here or before.',
    path,
    query: Type.Pick(itemsQuery, ['include']),
    body: { content: json(addItems, asked) },
    answers: { 200: page('The items as they are kept.') },
    errors: { ...absent, ...badItems },
  }),
  listItems: operation({
    tag,
    summary: 'List the items of a conversation',
    path,
    query: itemsQuery,
    answers: { 200: page('A page of items.') },
    errors: { ...absent, invalid_request: 'order must be asc or desc.' },
  }),
  showItem: operation({
    tag,
    summary: 'Show an item of a conversation',
    path: itemPath,
    query: Type.Pick(itemsQuery, ['include']),
    answers: { 200: { description: 'The item.', content: json(keptItem, sampleKeptItem) } },
    errors: absentItem,
  }),
  removeItem: operation({
    tag,
    summary: 'Delete an item of a conversation',
    path: itemPath,
    answers: { 200: shown('The conversation without it.') },
    errors: absentItem,
  }),
}
