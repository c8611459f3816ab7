import { invalidResponse } from '#inference/decode-errors.ts'
import { readNumber, readText } from '#inference/upstream-fields.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ItemKind, Output, OutputItem } from './output.ts'
import { Message, Reasoning } from './text-item.ts'
import { HostedTool, ToolCall } from './tool-item.ts'

/**
 * Identifiers of upstreams are unreliable: GitHub Copilot sends a different id with each event,
 * llama.cpp sends no index and no id for calls, and vLLM ends with other ids than it streamed. So an
 * event belongs to the item with its id, else to the item at its index, else to the open item of the
 * right kind.
 */
type Identity = { id: string | null; callId: string | null; index: number | null }

/** The most items of one generation. */
const itemsMax = 4_096

/**
 * Returns null for an item without a type. One of an unknown type is forwarded like a hosted tool:
 * clients skip item types that they do not know.
 */
export function createItem(output: Output, type: string): OutputItem | null {
  const item = newItem(output, type)
  if (item === null) return null
  if (output.items.length === itemsMax) throw invalidResponse('sent too many output items')
  output.items.push(item)
  return item
}

function newItem(output: Output, type: string): OutputItem | null {
  switch (type) {
    case 'message':
      return new Message(output)
    case 'reasoning':
      return new Reasoning(output)
    case 'function_call':
    case 'custom_tool_call':
      return new ToolCall(output, type)
    default:
      return type === '' ? null : new HostedTool(output, type)
  }
}

/** The item that an event is about, ended or not. */
export function findItem(output: Output, event: JsonObject, kind: ItemKind): OutputItem | null {
  const named = output.byId.get(readText(event['item_id']) ?? '')
  if (named !== undefined && fits(named, kind)) return named
  const index = readNumber(event['output_index'])
  const open = output.items.findLast((item) => !item.done && item.kind === kind) ?? null
  if (index === null) return open
  const atIndex = output.items.filter((item) => item.index === index)
  const match = atIndex.findLast((item) => item.kind === kind)
  if (match !== undefined) return match
  // An unknown index belongs to an item announced without one, or to a new item.
  return atIndex.length > 0 || open?.index === null ? open : null
}

/** An id match also counts for servers that stream announced reasoning as output text. */
function fits({ kind, isAnnounced, done }: OutputItem, wanted: ItemKind): boolean {
  return kind === wanted || (wanted === 'message' && kind === 'reasoning' && isAnnounced && !done)
}

/**
 * The item that an event adds to or completes; a new one where no open item matches. Null where the
 * event completes an item that has ended: a repetition.
 */
export function itemFor(
  output: Output,
  event: JsonObject,
  { type, kind, step }: { type: string; kind: ItemKind; step: 'delta' | 'done' },
): OutputItem | null {
  const found = findItem(output, event, kind)
  if (found !== null && !found.done) return found
  if (found !== null && step === 'done') return null
  const identity = {
    id: readText(event['item_id']),
    callId: null,
    index: readNumber(event['output_index']),
  }
  return createIdentified(output, type, identity)
}

/** Handles `output_item.added`; returns null for an unsupported item type. */
export function announceItem(output: Output, event: JsonObject, source: JsonObject): void {
  const identity = readIdentity(event, source)
  const type = readText(source['type'])
  const named = output.byId.get(identity.id ?? '')
  const known = named?.type === type && !named.done ? named : undefined
  // Events may arrive before the announcement of their item.
  const isUnannounced = (item: OutputItem) =>
    !item.done && !item.isAnnounced && item.type === type && isCompatible(item, identity)
  const item = known ?? output.items.findLast(isUnannounced) ?? createItem(output, type ?? '')
  if (item === null) return
  identify(item, identity)
  item.announced = source
  item.isAnnounced = true
  // Content in the announcement is repeated by later events, so it is not emitted here.
  item.announce(source)
}

/** The item of `output_item.done`; null for a repetition or an unsupported item type. */
export function findItemToEnd(
  output: Output,
  event: JsonObject,
  source: JsonObject,
): OutputItem | null {
  const identity = readIdentity(event, source)
  const type = readText(source['type']) ?? ''
  const named = output.byId.get(identity.id ?? identity.callId ?? '')
  if (named?.type === type) return named.done ? null : named
  if (identity.index !== null) {
    const atIndex = output.items.filter(
      (item) => item.type === type && item.index === identity.index,
    )
    const open = atIndex.find((item) => !item.done)
    if (open !== undefined) return open
    if (identity.id === null && atIndex.some((item) => item.isRepeatedBy(source))) return null
  }
  const open = output.items.find(
    (item) => !item.done && item.type === type && isCompatible(item, identity),
  )
  if (open === undefined) return createIdentified(output, type, identity)
  identify(open, identity)
  return open
}

type OutputMatcher = (item: OutputItem, final: JsonObject, index: number) => boolean

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
  items: readonly OutputItem[],
  finalOutput: readonly JsonObject[],
): { finals: Map<OutputItem, JsonObject>; missing: JsonObject[] } {
  const finals = new Map<OutputItem, JsonObject>()
  // An item that ended without content may still get it here.
  const candidates = new Set(items.filter((item) => !item.done || item.begun))
  let unmatched = [...finalOutput.entries()]
  for (const isMatch of outputMatchers) {
    unmatched = unmatched.filter(([index, final]) => {
      const matches = (item: OutputItem) =>
        item.type === final['type'] && isMatch(item, final, index)
      const match = candidates.values().find(matches)
      if (match === undefined) return true
      candidates.delete(match)
      finals.set(match, final)
      return false
    })
  }
  return { finals, missing: unmatched.map(([, final]) => final) }
}

function createIdentified(output: Output, type: string, identity: Identity): OutputItem | null {
  const item = createItem(output, type)
  if (item !== null) identify(item, identity)
  return item
}

function readIdentity(event: JsonObject, item: JsonObject): Identity {
  return {
    id: readText(item['id']),
    callId: readText(item['call_id']),
    index: readNumber(event['output_index']),
  }
}

function identify(item: OutputItem, identity: Identity): void {
  item.id ??= identity.id
  item.callId ??= identity.callId
  item.index ??= identity.index
  // llama.cpp refers to a call without an id by its call id in later events.
  const id = identity.id ?? identity.callId
  if (id !== null) item.output.byId.set(id, item)
}

function isCompatible(item: OutputItem, identity: Identity): boolean {
  const differ = <T>(one: T | null, other: T | null) =>
    one !== null && other !== null && one !== other
  return !differ(item.index, identity.index) && !differ(item.callId, identity.callId)
}
