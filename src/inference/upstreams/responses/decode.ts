import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { GenerationEvent } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import type { ToolName } from '#inference/request.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { finishGeneration } from './finish.ts'
import { takeItemEvent } from './item-events.ts'
import type { Items } from './items.ts'
import { createSequence } from './sequence.ts'
import { type EndStatus, eventMeanings } from './wire.ts'

export type DecoderOptions = {
  /** Whether log probabilities were asked for; LM Studio sends them unasked. */
  logprobs: boolean
  /** The most argument text of all tool calls together, in characters. */
  toolArgumentCharsMax: number
  /** Whose the sealed payloads of this answer are. */
  maker: string
  /** Whether a call of this tool is an answer to the request; every other one is a failure. */
  mayCall: (tool: ToolName) => boolean
  /** Makes a call id where the upstream gives none, or gives one twice. */
  mintCallId: () => string
}

/**
 * Decodes the answer to POST /responses, streamed or whole, of any server that speaks the format.
 * What it says may come as deltas, as whole parts, as whole items or only in the last event; each
 * text is passed on as soon as it is known, and once.
 */
export function createDecoder(options: DecoderOptions): Decoder {
  return new ResponseDecoder(options)
}

class ResponseDecoder implements Decoder {
  readonly #items: Items
  #isStarted = false
  #state: Decoder['state'] = 'open'

  constructor(options: DecoderOptions) {
    this.#items = openItems(options)
  }

  get state() {
    return this.#state
  }

  push(event: ServerSentEvent, out: GenerationEvent[]) {
    if (this.#state === 'done') return
    if (event.data === '[DONE]') throw truncated()
    this.#items.sequence.sink = out
    this.#decodeEvent(event, out)
  }

  pushBody(body: string, out: GenerationEvent[]) {
    const response = parseJson(body)
    if (!isRecord(response)) return
    if (!isResponse(response)) {
      throwIfError(response)
      return
    }
    this.#items.sequence.sink = out
    this.#start(out)
    this.#finish(statusOfWhole(response), response, out)
  }

  end() {
    if (this.#state !== 'done') throw truncated()
  }

  #decodeEvent(event: ServerSentEvent, out: GenerationEvent[]) {
    const payload = parseJson(event.data)
    // Anything but a JSON object is a proxy's keep-alive or the end of a truncated body.
    if (!isRecord(payload)) return
    const type = typeof payload['type'] === 'string' ? payload['type'] : event.event
    const meaning = eventMeanings.get(type)
    if (meaning === undefined) {
      if (type.startsWith('response.')) this.#start(out)
      else if (isUntyped(type) || payload['object'] === 'error') throwIfError(payload)
      return
    }
    if (meaning.about === 'error') throw failure({ ...payload, type: 'error' })
    this.#start(out)
    if (meaning.about === 'end') {
      const response = isRecord(payload['response']) ? payload['response'] : {}
      this.#finish(worstOf(meaning.status, response['status']), response, out)
    } else {
      takeItemEvent(this.#items, meaning, payload)
    }
  }

  #start(out: GenerationEvent[]) {
    if (this.#isStarted) return
    out.push({ type: 'generation-start' })
    this.#isStarted = true
  }

  #finish(status: EndStatus, response: JsonObject, out: GenerationEvent[]) {
    if (status === 'failed') throw failure({ error: response['error'] })
    if (status === 'cancelled') throw cancelled()
    out.push(finishGeneration(this.#items, status, response))
    this.#state = 'done'
  }
}

function openItems(options: DecoderOptions): Items {
  return {
    all: [],
    byId: new Map(),
    sequence: createSequence(),
    ledger: {
      takenCallIds: new Set(),
      mayCall: options.mayCall,
      mintCallId: options.mintCallId,
      charsLeft: options.toolArgumentCharsMax,
    },
    logprobs: options.logprobs,
    maker: options.maker,
  }
}

/** `message` is the default name of a server-sent event (WHATWG HTML, 9.2.6). */
function isUntyped(type: string): boolean {
  return type === '' || type === 'message'
}

function isResponse(body: JsonObject): boolean {
  return body['object'] === 'response' || Array.isArray(body['output'])
}

function statusOfWhole(response: JsonObject): EndStatus {
  const { status } = response
  if (status === undefined || status === null) return 'completed'
  if (isEndStatus(status)) return status
  throw new AppError('upstream_invalid_answer', 'The upstream answered before it was complete.')
}

/** From the best end to the worst. */
const endStatuses: readonly EndStatus[] = ['completed', 'incomplete', 'cancelled', 'failed']

/** Of the event's name and the response's own word, the one that promises less. */
function worstOf(named: EndStatus, said: unknown): EndStatus {
  if (!isEndStatus(said)) return named
  return endStatuses.indexOf(said) > endStatuses.indexOf(named) ? said : named
}

function isEndStatus(value: unknown): value is EndStatus {
  return endStatuses.some((status) => status === value)
}

function throwIfError(payload: JsonObject): void {
  const error = errorFromPayload(payload)
  if (error !== null) throw error
}

function failure(payload: JsonObject): AppError {
  return (
    errorFromPayload(payload) ??
    new AppError('upstream_error', 'The upstream failed to answer this request.')
  )
}

function cancelled(): AppError {
  return new AppError('upstream_error', 'The upstream cancelled the response.')
}

function truncated(): AppError {
  return new AppError('upstream_truncated', 'The upstream ended its answer before it was complete.')
}
