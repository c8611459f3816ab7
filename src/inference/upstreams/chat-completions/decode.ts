import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { FinishReason, GenerationEvent } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { TextFrame } from '#inference/text-frame.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import {
  invalidResponse,
  isDoneMarker,
  reportedError,
  truncatedResponse,
} from '../shared/errors.ts'
import {
  createDeltaState,
  type DeltaOptions,
  type DeltaState,
  endDelta,
  readDelta,
  readText,
  readUnstreamed,
} from './delta.ts'
import { readFinishReason, readLogprobs, readPlainText, readUsage, type TextField } from './read.ts'
import type { ChatChoice, ChatChunk } from './wire.ts'

export type ChatDecoderOptions = DeltaOptions & {
  /** Whether log probabilities were requested. */
  logprobs: boolean
}

type State = {
  phase: Decoder['state']
  readonly wantsLogprobs: boolean
  readonly delta: DeltaState
  /** The frame of the last chunk that contained only text, and the field of the text. */
  readonly textFrame: TextFrame
  textField: TextField
  isStarted: boolean
  /** Objects arrived that are not chunks. */
  sawForeign: boolean
  /** The last message was truncated JSON; only the end of the body may follow it. */
  isBroken: boolean
  /** As the upstream sent it; the latest counts. */
  usage: unknown
  ending: { reason: FinishReason; rawReason: string }
}

/** Decodes a chat-completions response, streamed or whole. */
export function createChatDecoder(options: ChatDecoderOptions): Decoder {
  return new ChatDecoder(options)
}

class ChatDecoder implements Decoder {
  readonly #state: State

  constructor(options: ChatDecoderOptions) {
    this.#state = {
      phase: 'open',
      wantsLogprobs: options.logprobs,
      delta: createDeltaState(options),
      textFrame: new TextFrame(),
      textField: 'content',
      isStarted: false,
      sawForeign: false,
      isBroken: false,
      usage: null,
      ending: { reason: 'stop', rawReason: '' },
    }
  }

  get state() {
    return this.#state.phase
  }

  push(event: ServerSentEvent, out: GenerationEvent[]) {
    push(this.#state, event, out)
  }

  pushBody(body: string, out: GenerationEvent[]) {
    push(this.#state, { event: '', data: body }, out)
  }

  end(out: GenerationEvent[]) {
    end(this.#state, out)
  }
}

function push(state: State, { event, data }: ServerSentEvent, out: GenerationEvent[]): void {
  if (state.phase === 'done') return
  if (state.isBroken) throw notAChunk()
  if (state.phase === 'open' && event === '' && pushText(state, data, out)) return
  const payload = parseJson(data)
  if (!isRecord(payload)) pushOther(state, { event, data }, out)
  else if (isUnknownEvent(event, payload)) state.sawForeign = true
  else if (event !== 'error') {
    pushChunk(state, payload, out)
    if (state.phase === 'open') learnFrame(state, payload, data)
  } else if (state.phase === 'open') {
    throw errorFromPayload(payload) ?? reportedError({ error: payload })
  }
}

/**
 * The protocol defines no event names. Data under a name other than `error`, or `message` (the
 * default), is a vendor's own event unless its object type is that of a chunk.
 */
function isUnknownEvent(event: string, { object }: JsonObject): boolean {
  if (event === '' || event === 'message' || event === 'error') return false
  return typeof object !== 'string' || !object.startsWith('chat.')
}

/** Whether the chunk differed from the previous one only in its text. */
function pushText(
  { textFrame, textField, delta }: State,
  data: string,
  out: GenerationEvent[],
): boolean {
  const text = textFrame.read(data)
  if (text === null) return false
  readText(delta, textField, text, out)
  return true
}

/** The end marker, an empty keep-alive line, or anything that is not a JSON object. */
function pushOther(state: State, { event, data }: ServerSentEvent, out: GenerationEvent[]): void {
  const text = data.trim()
  if (isDoneMarker(text)) {
    end(state, out)
  } else if (text !== '' && state.phase === 'open') {
    if (event === 'error') throw reportedError()
    if (!text.startsWith('{')) throw notAChunk()
    state.isBroken = true
  }
}

/** Records the frame of a chunk that contains only text. */
function learnFrame(state: State, chunk: ChatChunk, data: string): void {
  if (state.wantsLogprobs || !state.textFrame.learns) return
  const plain = readPlainText(chunk)
  if (plain === null) return
  state.textField = plain.field
  state.textFrame.learn(data, plain.field, plain.text)
}

function pushChunk(state: State, chunk: ChatChunk, out: GenerationEvent[]): void {
  const { choices, usage } = chunk
  const hasChoices = Array.isArray(choices)
  if ((chunk.error || !hasChoices) && state.phase === 'open') {
    const failure = errorFromPayload(chunk)
    if (failure !== null) throw failure
    if (!hasChoices && !usage) {
      state.sawForeign = true
      return
    }
  }
  if (!state.isStarted) {
    state.isStarted = true
    out.push({ type: 'generation-start' })
  }
  if (usage) state.usage = usage
  if (state.phase === 'finishing') {
    // A chunk that contains only usage is the last one.
    if (usage && (!hasChoices || choices.length === 0)) finish(state, out)
    return
  }
  state.delta.citations.readChunk(chunk)
  if (!hasChoices) return
  for (const choice of choices) {
    if (state.phase === 'open' && isRecord(choice)) readChoice(state, choice, out)
  }
}

function readChoice(state: State, choice: ChatChoice, out: GenerationEvent[]): void {
  const { index, delta, message, finish_reason: rawReason, usage } = choice
  // Only one choice was requested.
  if (typeof index === 'number' && index !== 0) return
  if (usage) state.usage = usage
  const isLast = typeof rawReason === 'string' && rawReason !== ''
  const logprobs = state.wantsLogprobs ? readLogprobs(choice.logprobs) : undefined
  const output = { logprobs, out }
  if (isRecord(delta)) readDelta(state.delta, delta, output)
  if (isRecord(message)) {
    if (isLast) readUnstreamed(state.delta, message, output)
    else if (!isRecord(delta)) readDelta(state.delta, message, output)
  }
  if (isLast) beginFinish(state, rawReason, out)
}

/** The model has finished; usage may follow. */
function beginFinish(state: State, rawReason: string, out: GenerationEvent[]): void {
  const reason = readFinishReason(rawReason)
  if (reason === null) {
    throw new AppError('upstream_error', 'The upstream failed during its response.', {
      cause: { finishReason: rawReason },
    })
  }
  endDelta(state.delta, out, reason !== 'stop')
  // Many servers send "stop" after a tool call; the call counts for more.
  const called = reason === 'stop' && state.delta.calls.count() > 0
  state.ending = { reason: called ? 'tool-calls' : reason, rawReason }
  state.phase = 'finishing'
}

function end(state: State, out: GenerationEvent[]): void {
  if (state.phase === 'finishing') finish(state, out)
  if (state.phase === 'done') return
  throw state.sawForeign && !state.isStarted ? notAChunk() : truncatedResponse('a finish reason')
}

function finish(state: State, out: GenerationEvent[]): void {
  out.push({ type: 'finish', ...state.ending, usage: readUsage(state.usage) })
  state.phase = 'done'
}

function notAChunk(): AppError {
  return invalidResponse('sent an event that is not part of a chat completion')
}
