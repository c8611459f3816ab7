import { expect } from 'bun:test'
import type { TSchema } from '@sinclair/typebox'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { streamEvent } from '#surfaces/responses/schema/events.ts'
import {
  compactedResponse,
  conversationObject,
  inputTokens,
  responseObject,
} from '#surfaces/responses/schema/response-object.ts'
import { checkDescribed } from './described-shapes.ts'
import {
  faultsOfCompaction,
  faultsOfEvent,
  faultsOfItem,
  faultsOfResponse,
  openResponsesExists,
} from './open-responses.ts'

/**
 * Every object of the Responses routes, against our own description, against the published document
 * and, where that is silent, against what the clients of OpenAI read.
 */

/** Throws where the body is not what an object of its kind has to be. */
export function checkBody(body: unknown): void {
  if (!isRecord(body)) return
  checks[kindOf(body)]?.(body)
  const schema = described[kindOf(body)]
  if (schema !== undefined) checkDescribed(schema, body)
}

const described: Readonly<Record<string, TSchema>> = {
  conversation: conversationObject,
  response: responseObject,
  'response.compaction': compactedResponse,
  'response.input_tokens': inputTokens,
}

const checks: Readonly<Record<string, (body: JsonObject) => void>> = {
  error: checkRefusal,
  list: checkList,
  response: (body) => expectNone(() => faultsOfResponse(publishedResponse(body))),
  'response.compaction': (body) => expectNone(() => faultsOfCompaction(publishedResponse(body))),
  'response.deleted': (body) =>
    expect(body).toEqual({
      id: expect.any(String),
      object: 'response.deleted',
      deleted: true,
    }),
  'response.input_tokens': (body) => expect(body['input_tokens']).toBeNumber(),
}

function kindOf(body: JsonObject): string {
  return 'error' in body && !('object' in body) ? 'error' : String(body['object'])
}

/** Throws where an event is not as the document has it, apart from what it does not know. */
export function checkEvent(event: JsonObject): void {
  // Over a WebSocket the name of its request stands beside.
  const { stream_id: _, ...own } = event
  checkDescribed(streamEvent, own)
  if (isForeignEvent(event) || isForeignItem(event['item'])) return
  const { response, item, part } = event
  const known = {
    ...event,
    ...(isRecord(response) ? { response: publishedResponse(response) } : {}),
    ...(isRecord(item) ? { item: publishedItem(item) } : {}),
    ...(isRecord(part) ? { part: publishedPart(part) } : {}),
  }
  expectNone(() => faultsOfEvent(known), String(event['type']))
}

/** The pages of items; other lists are not of these routes. */
function checkList(list: JsonObject): void {
  // Pages with a cursor of their own name no ids.
  if (!('has_more' in list) || 'next' in list || 'next_page' in list) return
  const data = Array.isArray(list['data']) ? list['data'].filter(isRecord) : []
  expect(list['data']).toHaveLength(data.length)
  const ids = data.map(({ id }) => id)
  expect([list['first_id'], list['last_id']]).toEqual([ids[0] ?? null, ids.at(-1) ?? null])
  expect(list['has_more']).toBeBoolean()
  for (const item of data) {
    expect(item['id'], 'clients page by ids').toBeString()
    if (!isForeignItem(item))
      expectNone(() => faultsOfItem(publishedItem(item)), String(item['type']))
  }
}

function checkRefusal(body: JsonObject): void {
  const error = isRecord(body['error']) ? body['error'] : {}
  expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type'])
  for (const field of ['code', 'message', 'type']) expect(error[field]).toBeString()
}

function expectNone(faults: () => readonly string[], what = ''): void {
  if (openResponsesExists) expect(faults(), what).toEqual([])
}

const publishedItems = new Set([
  'message',
  'function_call',
  'function_call_output',
  'reasoning',
  'compaction',
])

function isForeignItem(item: unknown): boolean {
  return isRecord(item) && !publishedItems.has(String(item['type']))
}

/** The events of items that the document does not know. */
function isForeignEvent({ type, annotation }: JsonObject): boolean {
  if (isRecord(annotation)) return !isPublishedCitation(annotation)
  return /^response\.(custom_tool_call_input|\w+_call|mcp_call_arguments|mcp_list_tools)\./.test(
    String(type),
  )
}

/**
 * The object as the document would have it. Where Open Responses and the clients of OpenAI disagree
 * the latter get what they need: this is the whole list of it.
 */
function publishedResponse(response: JsonObject): JsonObject {
  const { text, reasoning, tools, tool_choice: choice } = response
  return {
    ...response,
    output: list(response['output'])
      .filter((item) => !isForeignItem(item))
      .map(publishedItem),
    ...(tools === undefined
      ? {}
      : { tools: list(tools).filter(({ type }) => type === 'function') }),
    ...(isRecord(choice) ? { tool_choice: publishedChoice(choice) } : {}),
    ...(isRecord(text) ? { text: publishedText(text) } : {}),
    ...(isRecord(reasoning) ? { reasoning: publishedReasoning(reasoning) } : {}),
  }
}

function publishedItem(item: JsonObject): JsonObject {
  if (item['type'] !== 'message') return item
  return { ...item, content: list(item['content']).map(publishedPart) }
}

function publishedPart(part: JsonObject): JsonObject {
  if (!('annotations' in part)) return part
  return { ...part, annotations: list(part['annotations']).filter(isPublishedCitation) }
}

function isPublishedCitation({ type }: JsonObject): boolean {
  return type === 'url_citation'
}

/** Tools of other types can be chosen, and be among those that are allowed. */
function publishedChoice(choice: JsonObject): unknown {
  if (choice['type'] === 'function') return choice
  if (choice['type'] !== 'allowed_tools') return 'auto'
  return { ...choice, tools: list(choice['tools']).filter(({ type }) => type === 'function') }
}

/** The document knows the schema of an answer only as null. */
function publishedText(text: JsonObject): JsonObject {
  const { format } = text
  return isRecord(format) && isRecord(format['schema'])
    ? { ...text, format: { ...format, schema: null } }
    : text
}

function publishedReasoning(reasoning: JsonObject): JsonObject {
  const { effort } = reasoning
  return effort === 'minimal' || effort === 'max' ? { ...reasoning, effort: 'high' } : reasoning
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
