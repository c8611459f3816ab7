import { readNumber, readText } from '#inference/upstream-fields.ts'
import { assertNever } from '#lib/assert.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { announceItem, findItem, findItemToEnd, itemFor } from './items.ts'
import type { Outcome, Output, OutputItem } from './output.ts'
import { Message, Reasoning, TextItem } from './text-item.ts'
import { HostedTool, ToolCall } from './tool-item.ts'
import { type EventMeaning, inputFields, type TextLabel } from './wire.ts'

type ItemMeaning = Exclude<EventMeaning, { about: 'end' } | { about: 'error' }>
type MeaningOf<About extends EventMeaning['about']> = Extract<EventMeaning, { about: About }>

/** Handles an event about one output item or a part of it. */
export function handleItemEvent(output: Output, meaning: ItemMeaning, event: JsonObject): void {
  switch (meaning.about) {
    case 'text':
      handleText(output, meaning, event)
      break
    case 'part':
      handlePart(output, meaning, event)
      break
    case 'tool-input':
      handleToolInput(output, meaning, event)
      break
    case 'annotation': {
      const item = findItem(output, event, 'message')
      if (item instanceof Message && !item.done) item.annotate(event['annotation'])
      break
    }
    case 'hosted-tool': {
      const item = findItem(output, event, 'hosted-tool')
      const isMeant = item instanceof HostedTool && !item.done && item.type === meaning.type
      if (isMeant) item.reportStage(meaning.stage)
      break
    }
    case 'hosted-input':
      handleHostedInput(output, meaning, event)
      break
    case 'hosted-event': {
      const item = findItem(output, event, 'hosted-tool')
      const isMeant = item instanceof HostedTool && !item.done && meaning.name.startsWith(item.type)
      if (isMeant) item.forward(meaning.name, event)
      break
    }
    case 'item-added':
      if (isRecord(event['item'])) announceItem(output, event, event['item'])
      break
    case 'item-done':
      if (isRecord(event['item'])) handleItemDone(output, event, event['item'])
      break
    default:
      assertNever(meaning)
  }
}

/** Ends an item with its final state. */
export function endItem(item: OutputItem, final: JsonObject, outcome: Outcome): void {
  item.done = true
  item.announced = {}
  item.finish(final)
  item.end(outcome)
}

function handleText(output: Output, meaning: MeaningOf<'text'>, event: JsonObject): void {
  const { label, step } = meaning
  const text = readText(
    event[step === 'delta' ? 'delta' : label === 'refusal' ? 'refusal' : 'text'],
  )
  if (text === null) return
  const item = itemFor(output, event, meaning)
  if (!(item instanceof TextItem)) return
  const itemLabel = labelIn(item, label)
  if (step === 'delta') {
    item.add(itemLabel, readNumber(event['summary_index']), text, event['logprobs'])
  } else {
    item.complete(itemLabel, text, event['logprobs'])
    item.settle()
  }
}

/** Text that a server streams as an answer in an item of reasoning is reasoning. */
function labelIn(item: TextItem, label: TextLabel): TextLabel {
  return item instanceof Reasoning && label !== 'summary' ? 'raw' : label
}

function handlePart(output: Output, meaning: MeaningOf<'part'>, event: JsonObject): void {
  const part = asRecord(event['part'])
  const text = readText(part['text']) ?? readText(part['refusal'])
  const isReasoning = meaning.of !== 'content' || part['type'] === 'reasoning_text'
  const kind = isReasoning ? 'reasoning' : 'message'
  // Only a part that carries text may create an item.
  const isKnown = meaning.step === 'added' || text === null
  const item = isKnown
    ? findItem(output, event, kind)
    : itemFor(output, event, { type: kind, kind, step: 'done' })
  if (!(item instanceof TextItem) || item.done) return
  const form = part['type'] === 'refusal' ? 'refusal' : 'answer'
  const label = labelIn(item, meaning.of === 'summary' ? 'summary' : form)
  if (meaning.step === 'added') {
    const field = label === 'summary' ? 'summary_index' : 'content_index'
    item.announcePart(label, readNumber(event[field]))
  } else if (text !== null) {
    item.complete(label, text, part['logprobs'])
  }
}

function handleToolInput(
  output: Output,
  meaning: MeaningOf<'tool-input'>,
  event: JsonObject,
): void {
  const item = itemFor(output, event, meaning)
  if (!(item instanceof ToolCall)) return
  if (meaning.step === 'delta') {
    item.addInput(readText(event['delta']) ?? '')
  } else {
    item.completeInput(event, readText(event[inputFields[meaning.type]]) ?? '')
    item.settle()
  }
}

function handleHostedInput(
  output: Output,
  { type, field, step }: MeaningOf<'hosted-input'>,
  event: JsonObject,
): void {
  const item = findItem(output, event, 'hosted-tool')
  if (!(item instanceof HostedTool) || item.done || item.type !== type) return
  if (step === 'delta') item.addInput(readText(event['delta']) ?? '')
  else item.completeInput(readText(event[field]) ?? '')
}

function handleItemDone(output: Output, event: JsonObject, final: JsonObject): void {
  const item = findItemToEnd(output, event, final)
  const outcome = final['status'] === 'incomplete' ? 'incomplete' : 'complete'
  if (item !== null) endItem(item, final, outcome)
}
