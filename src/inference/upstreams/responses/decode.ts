import { isDoneMarker, reportedError, truncatedResponse } from '#inference/decode-errors.ts'
import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { FinishReason, GenerationEvent } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { readRecords, readText } from '#inference/upstream-fields.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { endItem, handleItemEvent } from './item-events.ts'
import { compareOutput, createItem } from './items.ts'
import { type DecoderOptions, type Outcome, Output, type OutputItem } from './output.ts'
import { readUsage, textCharsOf } from './read.ts'
import { TextItem } from './text-item.ts'
import { type EndStatus, eventMeanings } from './wire.ts'

/**
 * Decodes the response to POST /responses, streamed or whole, of any server that speaks the format.
 * Content may arrive as deltas, as whole parts, as whole items or only in the final event; each text
 * is emitted once, as soon as it is known.
 */
export function createDecoder(options: DecoderOptions): Decoder {
  return new ResponseDecoder(options)
}

class ResponseDecoder implements Decoder {
  readonly #output: Output
  #isStarted = false
  #state: Decoder['state'] = 'open'

  constructor(options: DecoderOptions) {
    this.#output = new Output(options)
  }

  get state() {
    return this.#state
  }

  push({ event, data }: ServerSentEvent, out: GenerationEvent[]) {
    if (this.#state === 'done') return
    const payload = parseJson(data)
    if (!isRecord(payload)) {
      if (isDoneMarker(data)) throw truncated()
      // A proxy's keep-alive, or the end of a truncated body.
      return
    }
    this.#output.sink = out
    const type = typeof payload['type'] === 'string' ? payload['type'] : event
    const meaning = eventMeanings.get(type)
    if (meaning === undefined) {
      this.#handleUnknown(type, payload, out)
      return
    }
    if (meaning.about === 'error') throw reportedError({ ...payload, type: 'error' })
    this.#start(out)
    if (meaning.about === 'end') {
      const response = asRecord(payload['response'])
      this.#finish(worseOf(meaning.status, response['status']), response, out)
    } else {
      handleItemEvent(this.#output, meaning, payload)
    }
  }

  pushBody(body: string, out: GenerationEvent[]) {
    const response = parseJson(body)
    if (!isRecord(response)) return
    if (response['object'] !== 'response' && !Array.isArray(response['output'])) {
      throwIfError(response)
      return
    }
    this.#output.sink = out
    this.#start(out)
    this.#finish(statusOf(response), response, out)
  }

  end() {
    if (this.#state !== 'done') throw truncated()
  }

  /** Only an error object without a type of its own ends the generation. */
  #handleUnknown(type: string, payload: JsonObject, out: GenerationEvent[]) {
    if (type.startsWith('response.')) this.#start(out)
    else if (isUntyped(type) || payload['object'] === 'error') throwIfError(payload)
  }

  #start(out: GenerationEvent[]) {
    if (this.#isStarted) return
    out.push({ type: 'generation-start' })
    this.#isStarted = true
  }

  #finish(status: EndStatus, response: JsonObject, out: GenerationEvent[]) {
    if (status === 'failed') throw reportedError({ error: response['error'] })
    if (status === 'cancelled') {
      throw new AppError('upstream_error', 'The upstream cancelled the response.')
    }
    out.push(finishGeneration(this.#output, status, response))
    this.#state = 'done'
  }
}

/** `message` is the default name of a server-sent event (WHATWG HTML, 9.2.6). */
function isUntyped(type: string): boolean {
  return type === '' || type === 'message'
}

/** From the best status to the worst. */
const endStatuses: readonly EndStatus[] = ['completed', 'incomplete', 'cancelled', 'failed']

function isEndStatus(value: unknown): value is EndStatus {
  return endStatuses.some((status) => status === value)
}

function statusOf({ status }: JsonObject): EndStatus {
  if (status === undefined || status === null) return 'completed'
  if (isEndStatus(status)) return status
  throw new AppError('upstream_invalid_answer', 'The upstream responded before it was complete.')
}

/** Where the event's name and the status of its response contradict each other, the worse one counts. */
function worseOf(named: EndStatus, status: unknown): EndStatus {
  return endStatuses.findLast((each) => each === named || each === status) ?? named
}

/**
 * Ends a response that completed or was cut short: emits what only its final event contains, ends
 * every item and returns the closing event.
 */
function finishGeneration(
  output: Output,
  status: 'completed' | 'incomplete',
  response: JsonObject,
): GenerationEvent {
  const { items } = output
  const finalOutput = readRecords(response['output'])
  const { finals, missing } = compareOutput(items, finalOutput)
  for (const item of items.filter(({ done }) => !done)) {
    const final = finals.get(item) ?? item.announced
    endItem(item, final, outcomeOf(item, status, final))
  }
  for (const final of missing) {
    const type = readText(final['type']) ?? ''
    const isStreamed = isAlreadyStreamed(items, type, finalOutput)
    const item = createItem(output, type)
    // The sealed payload of reasoning remains, or nothing.
    const { summary: _summary, content: _content, ...rest } = final
    if (item !== null) endItem(item, isStreamed ? rest : final, outcomeOf(item, status, final))
  }
  // The last block was kept open because it might be the last.
  output.active?.close(output.active.outcome !== 'incomplete')
  output.active = null
  const { reason } = asRecord(response['incomplete_details'])
  const rawReason = (status === 'incomplete' ? readText(reason) : null) ?? status
  return {
    type: 'finish',
    reason: finishReason(items, status, rawReason),
    rawReason,
    usage: readUsage(response['usage']),
    ...readReported(response),
  }
}

/** What only this format reports about a call. */
const reportedFields = ['tool_usage', 'input_transformations', 'prompt_cache_diagnostics']

function readReported(response: JsonObject): { reported?: JsonObject } {
  const fields = reportedFields.filter((name) => (response[name] ?? null) !== null)
  if (fields.length === 0) return {}
  return { reported: Object.fromEntries(fields.map((name) => [name, response[name]])) }
}

/** The item's own status counts; without one, whether its text is known to be complete. */
function outcomeOf(
  item: OutputItem,
  status: 'completed' | 'incomplete',
  final: JsonObject,
): Outcome {
  if (final['status'] === 'completed') return 'complete'
  if (final['status'] === 'incomplete') return 'incomplete'
  return status === 'completed' || item.settled ? 'complete' : 'incomplete'
}

/**
 * Whether all text of this item type was streamed, only divided into other items. Repeating it would
 * be worse than the wrong division.
 */
function isAlreadyStreamed(
  items: readonly OutputItem[],
  type: string,
  finalOutput: readonly JsonObject[],
): boolean {
  if (type !== 'message' && type !== 'reasoning') return false
  let chars = 0
  for (const final of finalOutput) if (final['type'] === type) chars += textCharsOf(final)
  for (const item of items)
    if (item instanceof TextItem && item.type === type) chars -= item.sentChars
  return chars <= 0
}

function finishReason(
  items: readonly OutputItem[],
  status: 'completed' | 'incomplete',
  rawReason: string,
): FinishReason {
  if (status === 'incomplete') return rawReason === 'content_filter' ? 'content-filter' : 'length'
  return items.some(({ kind }) => kind === 'tool-call') ? 'tool-calls' : 'stop'
}

function throwIfError(payload: JsonObject): void {
  const error = errorFromPayload(payload)
  if (error !== null) throw error
}

function truncated(): AppError {
  return truncatedResponse('a final event')
}
