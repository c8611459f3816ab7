import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { FinishReason, GenerationEvent } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { TextFrame } from '#inference/text-frame.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import {
  type DeltaReaderOptions,
  type DeltaState,
  endDelta,
  openDelta,
  readDelta,
  readText,
  readUnseen,
} from './delta.ts'
import { readFinishReason } from './finish-reason.ts'
import { readLogprobs } from './logprobs.ts'
import { plainTextOf, type TextField } from './plain-chunk.ts'
import { readUsage } from './usage.ts'
import type { ChatChoice, ChatChunk } from './wire.ts'

export type ChatDecoderOptions = DeltaReaderOptions & {
  /** Whether log probabilities were asked for. */
  logprobs: boolean
}

type State = {
  phase: Decoder['state']
  readonly wantsLogprobs: boolean
  readonly delta: DeltaState
  /** What the last chunk looked like that brought text alone, and where it had its text. */
  readonly textFrame: TextFrame
  textField: TextField
  started: boolean
  /** Objects came that were no chunks. */
  sawForeign: boolean
  /** The last message was JSON that breaks off; only the end of the body may follow it. */
  broken: boolean
  /** As the upstream gave it; the latest wins. */
  usage: unknown
  ending: { reason: FinishReason; rawReason: string }
}

/** Reads a chat-completions answer, streamed or whole. */
export function createChatDecoder(options: ChatDecoderOptions): Decoder {
  return new ChatDecoder(options)
}

class ChatDecoder implements Decoder {
  readonly #state: State

  constructor(options: ChatDecoderOptions) {
    this.#state = {
      phase: 'open',
      wantsLogprobs: options.logprobs,
      delta: openDelta(options),
      textFrame: new TextFrame(),
      textField: 'content',
      started: false,
      sawForeign: false,
      broken: false,
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

function push(state: State, message: ServerSentEvent, out: GenerationEvent[]): void {
  if (state.phase === 'done') return
  if (state.broken) throw notAChunk()
  if (state.phase === 'open' && message.event === '' && pushText(state, message.data, out)) return
  const payload = parseJson(message.data)
  if (!isRecord(payload)) pushOther(state, message, out)
  else if (isUnknownEvent(message.event, payload)) state.sawForeign = true
  else if (message.event !== 'error') {
    pushChunk(state, payload, out)
    if (state.phase === 'open') learnFrame(state, payload, message.data)
  } else if (state.phase === 'open') {
    throw errorFromPayload(payload) ?? errorFromPayload({ error: payload }) ?? reportedError()
  }
}

/**
 * The protocol names no events. Data under any other name than `error`, or `message` (the default),
 * is a vendor's own event unless it says that it is a chunk.
 */
function isUnknownEvent(event: string, { object }: JsonObject): boolean {
  if (event === '' || event === 'message' || event === 'error') return false
  return typeof object !== 'string' || !object.startsWith('chat.')
}

/** Whether the chunk was one like the chunk before, but for its text. */
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

/** The closing marker, an empty line that keeps the connection, or no JSON object at all. */
function pushOther(state: State, message: ServerSentEvent, out: GenerationEvent[]): void {
  const text = message.data.trim()
  if (/^"?\[done\]"?$/i.test(text)) {
    end(state, out)
  } else if (text !== '' && state.phase === 'open') {
    if (message.event === 'error') throw reportedError()
    if (!text.startsWith('{')) throw notAChunk()
    state.broken = true
  }
}

/** Remembers what a chunk looks like that brings text alone. */
function learnFrame(state: State, chunk: ChatChunk, data: string): void {
  if (state.wantsLogprobs || !state.textFrame.learns) return
  const plain = plainTextOf(chunk)
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
  if (!state.started) {
    state.started = true
    out.push({ type: 'generation-start' })
  }
  if (usage) state.usage = usage
  if (state.phase === 'finishing') {
    // The chunk that brings usage and nothing else is the last one.
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
  const { index, delta, message, finish_reason: word, usage } = choice
  // Never asked for, so a second choice is nobody's answer.
  if (typeof index === 'number' && index !== 0) return
  if (usage) state.usage = usage
  const isLast = typeof word === 'string' && word !== ''
  const logprobs = state.wantsLogprobs ? readLogprobs(choice.logprobs) : undefined
  const writing = { logprobs, out }
  if (isRecord(delta)) readDelta(state.delta, delta, writing)
  if (isRecord(message)) {
    if (isLast) readUnseen(state.delta, message, writing)
    else if (!isRecord(delta)) readDelta(state.delta, message, writing)
  }
  if (isLast) beginFinish(state, word, out)
}

/** The model is done; its usage may still come. */
function beginFinish(state: State, word: string, out: GenerationEvent[]): void {
  const reason = readFinishReason(word)
  if (reason === null) {
    throw new AppError('upstream_error', 'The upstream failed in the middle of its answer.', {
      cause: { finishReason: word },
    })
  }
  endDelta(state.delta, out, reason !== 'stop')
  // Many servers say "stop" after a tool call; the calls count for more than the word.
  const called = reason === 'stop' && state.delta.calls.count() > 0
  state.ending = { reason: called ? 'tool-calls' : reason, rawReason: word }
  state.phase = 'finishing'
}

function end(state: State, out: GenerationEvent[]): void {
  if (state.phase === 'finishing') finish(state, out)
  if (state.phase === 'done') return
  if (state.sawForeign && !state.started) throw notAChunk()
  throw new AppError(
    'upstream_truncated',
    'The upstream ended its answer without a finish reason: the answer was truncated.',
  )
}

function finish(state: State, out: GenerationEvent[]): void {
  out.push({ type: 'finish', ...state.ending, usage: readUsage(state.usage) })
  state.phase = 'done'
}

function notAChunk(): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream sent something that is no part of a chat completion.',
  )
}

function reportedError(): AppError {
  return new AppError('upstream_error', 'The upstream reported an error.')
}
