import type { FinishReason, GenerationEvent } from '#inference/events.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { finishItem } from './item-events.ts'
import { compareOutput, createItem, type Item, type Items, sentCharsOf } from './items.ts'
import { readRecords, readText, readUsage, textCharsOf } from './read.ts'
import { end, finish, type Outcome } from './sequence.ts'

/**
 * The end of a response that completed or was cut short: tells what only its last event tells, ends
 * every item and returns the closing event.
 */
export function finishGeneration(
  items: Items,
  status: 'completed' | 'incomplete',
  response: JsonObject,
): GenerationEvent {
  const output = readRecords(response['output'])
  const { finals, missing } = compareOutput(items, output)
  for (const item of items.all.filter(({ done }) => !done)) {
    endItem(item, status, finals.get(item) ?? item.announced)
  }
  for (const final of missing) {
    const type = readText(final['type']) ?? ''
    const isTold = wasToldOtherwise(items, type, output)
    const item = createItem(items, type)
    if (item !== null) endItem(item, status, isTold ? withoutText(final) : final)
  }
  finish(items.sequence)
  const details = isRecord(response['incomplete_details']) ? response['incomplete_details'] : {}
  const rawReason = (status === 'incomplete' ? readText(details['reason']) : null) ?? status
  return {
    type: 'finish',
    reason: finishReason(items, status, rawReason),
    rawReason,
    usage: readUsage(response['usage']),
  }
}

function endItem(item: Item, status: 'completed' | 'incomplete', final: JsonObject): void {
  const outcome = outcomeAtEnd(item, status, final)
  finishItem(item, final)
  end(item.body.lane, outcome)
}

/** An item's own word counts; where it has none, what is known of its text. */
function outcomeAtEnd(item: Item, status: 'completed' | 'incomplete', final: JsonObject): Outcome {
  if (final['status'] === 'completed') return 'complete'
  if (final['status'] === 'incomplete') return 'incomplete'
  return status === 'completed' || item.body.lane.settled ? 'complete' : 'incomplete'
}

/**
 * Whether all text of this type was streamed already, only divided into other items. To tell it
 * twice would be worse than the wrong division.
 */
function wasToldOtherwise(items: Items, type: string, output: readonly JsonObject[]): boolean {
  if (type !== 'message' && type !== 'reasoning') return false
  let chars = 0
  for (const final of output) if (final['type'] === type) chars += textCharsOf(final)
  for (const { body } of items.all) if (body.kind === type) chars -= sentCharsOf(body)
  return chars <= 0
}

/** What is left is the sealed payload of reasoning, or nothing. */
function withoutText(item: JsonObject): JsonObject {
  const { summary: _summary, content: _content, ...rest } = item
  return rest
}

function finishReason(
  items: Items,
  status: 'completed' | 'incomplete',
  rawReason: string,
): FinishReason {
  if (status === 'incomplete') return rawReason === 'content_filter' ? 'content-filter' : 'length'
  return items.all.some(({ body }) => body.kind === 'tool-call') ? 'tool-calls' : 'stop'
}
