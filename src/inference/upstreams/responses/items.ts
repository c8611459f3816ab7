import { invalidResponse } from '#inference/decode-errors.ts'
import { readNumber, readText } from '#inference/upstream-fields.ts'
import { assertNever } from '#lib/assert.ts'
import type { JsonObject } from '#lib/json.ts'
import { createHostedTool, type HostedTool } from './hosted-tool.ts'
import { createMessage, type Message } from './message.ts'
import { textCharsOf } from './read.ts'
import { createReasoning, type Reasoning } from './reasoning.ts'
import type { BlockSequence, LaneKind } from './sequence.ts'
import { createToolCall, type ToolCall, type ToolCallContext } from './tool-call.ts'
import { hostedToolTypes } from './wire.ts'

/**
 * The output items of one generation. Identifiers of upstreams are unreliable: GitHub Copilot sends
 * a different id with each event, llama.cpp sends no index and no id for calls, and vLLM ends with
 * other ids than it streamed. So an event belongs to the item with its id, else to the item at its
 * index, else to the open item of the right kind.
 */
export type Items = {
  /** In the order in which they were first seen. */
  readonly all: Item[]
  readonly byId: Map<string, Item>
  readonly sequence: BlockSequence
  readonly calls: ToolCallContext
  readonly logprobs: boolean
  /** `sealedBy` of the reasoning. */
  readonly sealedBy: string
}

/** One output item, with its identifiers at the upstream. */
export type Item = {
  readonly type: string
  readonly body: Message | Reasoning | ToolCall | HostedTool
  id: string | null
  callId: string | null
  index: number | null
  /** The item in `output_item.added`; empty before that event and after the end. */
  announced: JsonObject
  /** Its end was reported; later events about it are repetitions. */
  done: boolean
}

/** The most items of one generation. */
const itemsMax = 4_096

/** Returns null for an item type that no surface can represent. */
export function createItem(items: Items, type: string): Item | null {
  const body = createBody(items, type)
  if (body === null) return null
  if (items.all.length === itemsMax) {
    throw invalidResponse('sent too many output items')
  }
  const item = { type, body, id: null, callId: null, index: null, announced: {}, done: false }
  items.all.push(item)
  return item
}

function createBody(items: Items, type: string): Item['body'] | null {
  switch (type) {
    case 'message':
      return createMessage(items.sequence, { logprobs: items.logprobs })
    case 'reasoning':
      return createReasoning(items.sequence, items.sealedBy)
    case 'function_call':
    case 'custom_tool_call':
      return createToolCall(items.sequence, type, items.calls)
    default:
      return hostedToolTypes.has(type) ? createHostedTool(items.sequence, type) : null
  }
}

/** The item that an event is about, ended or not. */
export function findItem(items: Items, event: JsonObject, kind: LaneKind): Item | null {
  const id = readText(event['item_id'])
  const named = id === null ? undefined : items.byId.get(id)
  if (named !== undefined && fits(named, kind)) return named
  const index = readNumber(event['output_index'])
  if (index === null) return findOpen(items, kind) ?? null
  const atIndex = items.all.filter((item) => item.index === index)
  const match = atIndex.findLast((item) => item.body.kind === kind)
  if (match !== undefined) return match
  // An unknown index belongs to an item announced without one, or to a new item.
  const open = findOpen(items, kind)
  return atIndex.length > 0 || open?.index === null ? (open ?? null) : null
}

/** The item that an event adds to; a new one where no open item matches. */
export function findOrCreateItem(
  items: Items,
  event: JsonObject,
  wanted: { type: string; kind: LaneKind },
): Item | null {
  const found = findItem(items, event, wanted.kind)
  if (found !== null && !found.done) return found
  const item = createItem(items, wanted.type)
  if (item !== null) {
    const index = readNumber(event['output_index'])
    identifyItem(items, item, { id: readText(event['item_id']), callId: null, index })
  }
  return item
}

/** Handles `output_item.added`; returns null for an unsupported item type. */
export function announceItem(items: Items, event: JsonObject, source: JsonObject): Item | null {
  const identity = readIdentity(event, source)
  const type = readText(source['type']) ?? ''
  const named = identity.id === null ? undefined : items.byId.get(identity.id)
  const known = named?.type === type && !named.done ? named : undefined
  // Events may arrive before the announcement of their item.
  const isUnannounced = (item: Item) =>
    !item.done && !item.body.lane.announced && item.type === type && isCompatible(item, identity)
  const item = known ?? items.all.findLast(isUnannounced) ?? createItem(items, type)
  if (item === null) return null
  identifyItem(items, item, identity)
  item.announced = source
  item.body.lane.announced = true
  return item
}

/** Handles `output_item.done`; returns null for a repetition or an unsupported item type. */
export function findItemToEnd(items: Items, event: JsonObject, source: JsonObject): Item | null {
  const identity = readIdentity(event, source)
  const type = readText(source['type']) ?? ''
  const named = items.byId.get(identity.id ?? identity.callId ?? '')
  if (named?.type === type) return named.done ? null : named
  if (identity.index !== null) {
    const atIndex = items.all.filter((item) => item.type === type && item.index === identity.index)
    const open = atIndex.find((item) => !item.done)
    if (open !== undefined) return open
    if (identity.id === null && atIndex.some((item) => isRepeated(item, source))) return null
  }
  const open = items.all.find(
    (item) => !item.done && item.type === type && isCompatible(item, identity),
  )
  const item = open ?? createItem(items, type)
  if (item !== null) identifyItem(items, item, identity)
  return item
}

type OutputMatcher = (item: Item, final: JsonObject, index: number) => boolean

/** The most reliable first: the same id, the same index, then the same type in order. */
const outputMatchers: readonly OutputMatcher[] = [
  (item, final) =>
    (item.id !== null && item.id === final['id']) ||
    (item.callId !== null && item.callId === final['call_id']),
  (item, _, index) => item.index === index,
  () => true,
]

/** Which streamed items the `output` of a finished response repeats, and which were not streamed. */
export function compareOutput(
  items: Items,
  output: readonly JsonObject[],
): { finals: Map<Item, JsonObject>; missing: JsonObject[] } {
  const finals = new Map<Item, JsonObject>()
  // An item that ended without content may still get it here.
  const candidates = new Set(items.all.filter((item) => !item.done || item.body.lane.begun))
  let unmatched = [...output.entries()]
  for (const isMatch of outputMatchers) {
    unmatched = unmatched.filter(([index, final]) => {
      const matches = (item: Item) => item.type === final['type'] && isMatch(item, final, index)
      const match = candidates.values().find(matches)
      if (match === undefined) return true
      candidates.delete(match)
      finals.set(match, final)
      return false
    })
  }
  return { finals, missing: unmatched.map(([, final]) => final) }
}

type ItemIdentity = { id: string | null; callId: string | null; index: number | null }

function readIdentity(event: JsonObject, item: JsonObject): ItemIdentity {
  return {
    id: readText(item['id']),
    callId: readText(item['call_id']),
    index: readNumber(event['output_index']),
  }
}

function identifyItem(items: Items, item: Item, identity: ItemIdentity): void {
  item.id ??= identity.id
  item.callId ??= identity.callId
  item.index ??= identity.index
  // llama.cpp refers to a call without an id by its call id in later events.
  const id = identity.id ?? identity.callId
  if (id !== null) items.byId.set(id, item)
}

/** An id match also counts for servers that stream announced reasoning as output text. */
function fits(item: Item, kind: LaneKind): boolean {
  const { body, done } = item
  if (body.kind === kind) return true
  return kind === 'message' && body.kind === 'reasoning' && body.lane.announced && !done
}

function findOpen(items: Items, kind: LaneKind): Item | undefined {
  return items.all.findLast((item) => !item.done && item.body.kind === kind)
}

/** Whether an item without an id, at the index of one that has ended, repeats that one. */
function isRepeated(item: Item, source: JsonObject): boolean {
  const { body } = item
  switch (body.kind) {
    case 'message':
    case 'reasoning':
      return sentCharsOf(body) === textCharsOf(source)
    case 'tool-call':
      return item.callId === readText(source['call_id'])
    case 'hosted-tool':
      return true
    default:
      return assertNever(body)
  }
}

export function sentCharsOf(body: Message | Reasoning): number {
  return body.kind === 'message' ? body.sentChars : body.sent.raw.chars + body.sent.summary.chars
}

function isCompatible(item: Item, identity: ItemIdentity): boolean {
  const differ = <T>(one: T | null, other: T | null) =>
    one !== null && other !== null && one !== other
  return !differ(item.index, identity.index) && !differ(item.callId, identity.callId)
}
