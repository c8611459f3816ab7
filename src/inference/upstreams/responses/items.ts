import { assertNever } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { createHostedTool, type HostedTool } from './hosted-tool.ts'
import { createMessage, type Message } from './message.ts'
import { readIndex, readText, textCharsOf } from './read.ts'
import { createReasoning, type Reasoning } from './reasoning.ts'
import type { LaneKind, Sequence } from './sequence.ts'
import { createToolCall, type ToolCall, type ToolCallLedger } from './tool-call.ts'
import { hostedToolTypes } from './wire.ts'

/**
 * The output items of one generation. Nothing that an upstream calls an item is reliable: GitHub
 * Copilot sends another id with each event, llama.cpp sends no index, and no id for calls, vLLM ends
 * with other ids than it streamed. So an exact id is believed first, then the index, then the open
 * item of the right kind is meant.
 */
export type Items = {
  /** In the order in which they were first seen. */
  readonly all: Item[]
  readonly byId: Map<string, Item>
  readonly sequence: Sequence
  readonly ledger: ToolCallLedger
  readonly logprobs: boolean
  readonly maker: string
}

/** One output item, under the names that it goes by at the upstream. */
export type Item = {
  readonly type: string
  readonly body: Message | Reasoning | ToolCall | HostedTool
  id: string | null
  callId: string | null
  index: number | null
  /** The item as it was announced; empty before and afterwards. */
  announced: JsonObject
  /** Its end was reported; whatever is still said about it is a repetition. */
  done: boolean
}

/** The most items of one generation. */
const itemsMax = 4_096

/** null for a type of item that the format does not know, or that none of our callers could read. */
export function createItem(items: Items, type: string): Item | null {
  const body = createBody(items, type)
  if (body === null) return null
  if (items.all.length === itemsMax) {
    throw new AppError('upstream_invalid_answer', 'The upstream sent too many output items.')
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
      return createReasoning(items.sequence, items.maker)
    case 'function_call':
    case 'custom_tool_call':
      return createToolCall(items.sequence, type, items.ledger)
    default:
      return hostedToolTypes.has(type) ? createHostedTool(items.sequence, type) : null
  }
}

/** The item that an event is about, ended or not. */
export function findItem(items: Items, event: JsonObject, kind: LaneKind): Item | null {
  const id = readText(event['item_id'])
  const named = id === null ? undefined : items.byId.get(id)
  if (named !== undefined && fits(named, kind)) return named
  const index = readIndex(event['output_index'])
  if (index === null) return findOpen(items, kind) ?? null
  const placed = items.all.filter((item) => item.index === index)
  const match = placed.findLast((item) => item.body.kind === kind)
  if (match !== undefined) return match
  // An index that no item has belongs to one that was announced without, or to a new one.
  const open = findOpen(items, kind)
  return placed.length > 0 || open?.index === null ? (open ?? null) : null
}

/** The item that an event adds to: a new one where none is known that can still grow. */
export function findGrowingItem(
  items: Items,
  event: JsonObject,
  wanted: { type: string; kind: LaneKind },
): Item | null {
  const found = findItem(items, event, wanted.kind)
  if (found !== null && !found.done) return found
  const item = createItem(items, wanted.type)
  if (item !== null) {
    const index = readIndex(event['output_index'])
    nameItem(items, item, { id: readText(event['item_id']), callId: null, index })
  }
  return item
}

/** `output_item.added`; null where the type of the item is not known. */
export function announceItem(items: Items, event: JsonObject, source: JsonObject): Item | null {
  const names = readNames(event, source)
  const type = readText(source['type']) ?? ''
  const named = names.id === null ? undefined : items.byId.get(names.id)
  const known = named?.type === type && !named.done ? named : undefined
  // Events may come before the announcement of their item.
  const early = (item: Item) =>
    !item.done && !item.body.lane.announced && item.type === type && mayBe(item, names)
  const item = known ?? items.all.findLast(early) ?? createItem(items, type)
  if (item === null) return null
  nameItem(items, item, names)
  item.announced = source
  item.body.lane.announced = true
  return item
}

/** `output_item.done`: null where it repeats what was said, or is of an unknown type. */
export function endingItem(items: Items, event: JsonObject, source: JsonObject): Item | null {
  const names = readNames(event, source)
  const type = readText(source['type']) ?? ''
  const named = items.byId.get(names.id ?? names.callId ?? '')
  if (named?.type === type) return named.done ? null : named
  if (names.index !== null) {
    const placed = items.all.filter((item) => item.type === type && item.index === names.index)
    const open = placed.find((item) => !item.done)
    if (open !== undefined) return open
    if (names.id === null && placed.some((item) => isRepeated(item, source))) return null
  }
  const open = items.all.find((item) => !item.done && item.type === type && mayBe(item, names))
  const item = open ?? createItem(items, type)
  if (item !== null) nameItem(items, item, names)
  return item
}

type Rule = (item: Item, final: JsonObject, place: number) => boolean

/** The surest sign first: the same name, the same place, at last the same type in order. */
const matchingRules: readonly Rule[] = [
  (item, final) =>
    (item.id !== null && item.id === final['id']) ||
    (item.callId !== null && item.callId === final['call_id']),
  (item, _, place) => item.index === place,
  () => true,
]

/** Which items the `output` of a finished response repeats, and what in it was never told. */
export function compareOutput(
  items: Items,
  output: readonly JsonObject[],
): { finals: Map<Item, JsonObject>; missing: JsonObject[] } {
  const finals = new Map<Item, JsonObject>()
  // An item that ended without giving anything may still be told here.
  const left = new Set(items.all.filter((item) => !item.done || item.body.lane.begun))
  let unmatched = [...output.entries()]
  for (const rule of matchingRules) {
    unmatched = unmatched.filter(([place, final]) => {
      const matches = (item: Item) => item.type === final['type'] && rule(item, final, place)
      const match = left.values().find(matches)
      if (match === undefined) return true
      left.delete(match)
      finals.set(match, final)
      return false
    })
  }
  return { finals, missing: unmatched.map(([, final]) => final) }
}

type Names = { id: string | null; callId: string | null; index: number | null }

function readNames(event: JsonObject, item: JsonObject): Names {
  return {
    id: readText(item['id']),
    callId: readText(item['call_id']),
    index: readIndex(event['output_index']),
  }
}

function nameItem(items: Items, item: Item, names: Names): void {
  item.id ??= names.id
  item.callId ??= names.callId
  item.index ??= names.index
  // llama.cpp names a call without id by its call id in the events that follow.
  const id = names.id ?? names.callId
  if (id !== null) items.byId.set(id, item)
}

/** An exact id is believed, also by a server that streams announced reasoning as an answer. */
function fits(item: Item, kind: LaneKind): boolean {
  const { body, done } = item
  if (body.kind === kind) return true
  return kind === 'message' && body.kind === 'reasoning' && body.lane.announced && !done
}

function findOpen(items: Items, kind: LaneKind): Item | undefined {
  return items.all.findLast((item) => !item.done && item.body.kind === kind)
}

/** Whether an item without an id, at the place of one that has ended, is that one again. */
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

function mayBe(item: Item, names: Names): boolean {
  const differ = <T>(one: T | null, other: T | null) =>
    one !== null && other !== null && one !== other
  return !differ(item.index, names.index) && !differ(item.callId, names.callId)
}
