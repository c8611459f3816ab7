import { readNumber, readText } from '#inference/upstream-fields.ts'
import { assertNever } from '#lib/assert.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { announceHostedTool, progressHostedTool } from './hosted-tool.ts'
import {
  announceItem,
  findItem,
  findItemToEnd,
  findOrCreateItem,
  type Item,
  type Items,
} from './items.ts'
import {
  addText,
  annotate,
  announceMessage,
  announceTextPart,
  completeText,
  finishMessage,
} from './message.ts'
import { addReasoning, announceParagraph, completeReasoning, finishReasoning } from './reasoning.ts'
import { endLane, type LaneKind, settleLane } from './sequence.ts'
import {
  addToolInput,
  announceToolCall,
  completeToolInput,
  finishToolCall,
  inputFields,
} from './tool-call.ts'
import type { EventMeaning } from './wire.ts'

export type ItemMeaning = Exclude<EventMeaning, { about: 'end' } | { about: 'error' }>

/** Handles an event about one output item or a part of it. */
export function handleItemEvent(items: Items, meaning: ItemMeaning, event: JsonObject): void {
  switch (meaning.about) {
    case 'text':
      handleText(items, meaning, event)
      break
    case 'reasoning':
      handleReasoning(items, meaning, event)
      break
    case 'part':
      handlePart(items, meaning, event)
      break
    case 'tool-input':
      handleToolInput(items, meaning, event)
      break
    case 'annotation':
      handleAnnotation(items, event)
      break
    case 'hosted-tool':
      handleHostedToolProgress(items, meaning, event)
      break
    case 'item':
      if (meaning.step === 'added') handleItemAdded(items, event)
      else handleItemDone(items, event)
      break
    default:
      assertNever(meaning)
  }
}

/** Ends an item with its final state. */
export function finishItem(item: Item, final: JsonObject): void {
  const { body } = item
  item.done = true
  item.announced = {}
  switch (body.kind) {
    case 'message':
      finishMessage(body, final)
      break
    case 'reasoning':
      finishReasoning(body, final)
      break
    case 'tool-call':
      finishToolCall(body, final)
      break
    case 'hosted-tool':
      announceHostedTool(body, final)
      break
    default:
      assertNever(body)
  }
}

type MeaningOf<About extends EventMeaning['about']> = Extract<EventMeaning, { about: About }>

function handleText(items: Items, meaning: MeaningOf<'text'>, event: JsonObject): void {
  const { form, step } = meaning
  const text = readText(event[step === 'delta' ? 'delta' : form === 'refusal' ? 'refusal' : 'text'])
  if (text === null) return
  const item = itemFor(items, event, { type: 'message', kind: 'message', step })
  if (item === null) return
  const { body } = item
  const piece = { form, text, logprobs: event['logprobs'] }
  if (step === 'delta') {
    if (body.kind === 'message') addText(body, piece)
    else if (body.kind === 'reasoning') addReasoning(body, { carrier: 'raw', index: null, text })
    return
  }
  if (body.kind === 'message') completeText(body, piece)
  else if (body.kind === 'reasoning') completeReasoning(body, 'raw', text)
  settleLane(body.lane)
}

function handleReasoning(items: Items, meaning: MeaningOf<'reasoning'>, event: JsonObject): void {
  const { carrier, step } = meaning
  const text = readText(event[step === 'delta' ? 'delta' : 'text'])
  if (text === null) return
  const body = itemFor(items, event, { type: 'reasoning', kind: 'reasoning', step })?.body
  if (body?.kind !== 'reasoning') return
  if (step === 'delta') {
    addReasoning(body, { carrier, index: readNumber(event['summary_index']), text })
  } else {
    completeReasoning(body, carrier, text)
    settleLane(body.lane)
  }
}

function handlePart(items: Items, meaning: MeaningOf<'part'>, event: JsonObject): void {
  const part = isRecord(event['part']) ? event['part'] : {}
  const text = readText(part['text']) ?? readText(part['refusal'])
  const isReasoning = meaning.of !== 'content' || part['type'] === 'reasoning_text'
  const kind = isReasoning ? 'reasoning' : 'message'
  // Only a part that carries text may create an item.
  const isKnown = meaning.step === 'added' || text === null
  const item = isKnown
    ? findItem(items, event, kind)
    : itemFor(items, event, { type: kind, kind, step: 'done' })
  if (item === null || item.done) return
  const { body } = item
  if (body.kind === 'reasoning') {
    const carrier = meaning.of === 'summary' ? 'summary' : 'raw'
    const index = readNumber(event[carrier === 'summary' ? 'summary_index' : 'content_index'])
    if (meaning.step === 'added') announceParagraph(body, carrier, index)
    else if (text !== null) completeReasoning(body, carrier, text)
  } else if (body.kind === 'message') {
    const form = part['type'] === 'refusal' ? 'refusal' : 'answer'
    const index = readNumber(event['content_index'])
    if (meaning.step === 'added') announceTextPart(body, form, index)
    else if (text !== null) completeText(body, { form, text, logprobs: part['logprobs'] })
  }
}

function handleToolInput(items: Items, meaning: MeaningOf<'tool-input'>, event: JsonObject): void {
  const { itemType, step } = meaning
  const body = itemFor(items, event, { type: itemType, kind: 'tool-call', step })?.body
  if (body?.kind !== 'tool-call') return
  if (step === 'delta') {
    addToolInput(body, readText(event['delta']) ?? '')
  } else {
    completeToolInput(body, event, readText(event[inputFields[itemType]]) ?? '')
    settleLane(body.lane)
  }
}

function handleAnnotation(items: Items, event: JsonObject): void {
  const item = findItem(items, event, 'message')
  if (item?.body.kind === 'message' && !item.done) annotate(item.body, event['annotation'])
}

function handleHostedToolProgress(
  items: Items,
  meaning: MeaningOf<'hosted-tool'>,
  event: JsonObject,
): void {
  const item = findItem(items, event, 'hosted-tool')
  if (item === null || item.done || item.type !== meaning.itemType) return
  if (item.body.kind === 'hosted-tool') progressHostedTool(item.body, meaning.stage)
}

function handleItemAdded(items: Items, event: JsonObject): void {
  const source = event['item']
  const body = isRecord(source) ? announceItem(items, event, source)?.body : undefined
  if (body === undefined || !isRecord(source)) return
  // Content in the announcement is repeated by later events, so it is not emitted here.
  if (body.kind === 'message') announceMessage(body, source)
  else if (body.kind === 'tool-call') announceToolCall(body, source)
  else if (body.kind === 'hosted-tool') announceHostedTool(body, source)
}

function handleItemDone(items: Items, event: JsonObject): void {
  const source = event['item']
  if (!isRecord(source)) return
  const item = findItemToEnd(items, event, source)
  if (item === null) return
  finishItem(item, source)
  endLane(item.body.lane, source['status'] === 'incomplete' ? 'incomplete' : 'complete')
}

/** The item that an event adds to or completes; null where it repeats an item that has ended. */
function itemFor(
  items: Items,
  event: JsonObject,
  wanted: { type: string; kind: LaneKind; step: 'delta' | 'done' },
): Item | null {
  if (wanted.step === 'done' && findItem(items, event, wanted.kind)?.done) return null
  return findOrCreateItem(items, event, wanted)
}
