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
 * Validates every object of the Responses endpoints against the OpenAPI document, the published
 * document and, where that is silent, the fields that the OpenAI clients read.
 */

/** Throws if the body is not a valid object of its kind. */
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

/** Throws if an event does not conform to the published document, except for unknown types. */
export function checkEvent(event: JsonObject): void {
  // Over a WebSocket it also has the stream id of its request.
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

/** The pages of items; other lists belong to other endpoints. */
function checkList(list: JsonObject): void {
  // Pages with their own cursor have no ids.
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

/** The events of items that the document does not define. */
function isForeignEvent({ type, annotation }: JsonObject): boolean {
  if (isRecord(annotation)) return !isPublishedCitation(annotation)
  return /^response\.(custom_tool_call_input|\w+_call(_\w+)?|mcp_list_tools)\./.test(String(type))
}

/**
 * The object in the form of the document. This is the complete list of differences between Open
 * Responses and the OpenAI clients, whose requirements take precedence.
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

/** Tools of other types can be chosen and allowed. */
function publishedChoice(choice: JsonObject): unknown {
  if (choice['type'] === 'function') return choice
  if (choice['type'] !== 'allowed_tools') return 'auto'
  return { ...choice, tools: list(choice['tools']).filter(({ type }) => type === 'function') }
}

/** The document only allows null for the schema of an output format. */
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
