import {
  invalidResponse,
  isDoneMarker,
  reportedError,
  truncatedResponse,
} from '#inference/decode-errors.ts'
import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { FinishReason, GenerationEvent } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { learnText, newTextFrame, readText, type TextFrame } from '#inference/text-frame.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { readLogprobs, readRecords } from '#inference/upstream-fields.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { Content, type ContentOptions } from './content.ts'
import { isTrailer, readFinishReason, readPlainText, readUsage, type TextField } from './read.ts'

export type ChatDecoderOptions = ContentOptions & {
  /** Whether log probabilities were requested. */
  logprobs: boolean
}

/** Decodes a chat-completions response, streamed or whole. */
export class ChatDecoder extends Content implements Decoder, TextFrame {
  state: Decoder['state'] = 'open'
  readonly #wantsLogprobs: boolean
  /** Of the last chunk that contained only text, with the field of the text. */
  beforeText = newTextFrame.beforeText
  afterText = newTextFrame.afterText
  missesLeft = newTextFrame.missesLeft
  #textField: TextField = 'content'
  #isStarted = false
  /** Objects arrived that are not chunks. */
  #sawForeign = false
  /** The last message was truncated JSON; only the end of the body may follow it. */
  #isBroken = false
  /**
   * The last chunk holds usage and no content, which ends a response of a server that sends no finish
   * reason (Snowflake), unless more content follows.
   */
  #hasTrailer = false
  /** As the upstream sent it; the latest counts. */
  #usage: unknown = null
  #ending: { reason: FinishReason; rawReason: string | null } = { reason: 'stop', rawReason: null }

  constructor(options: ChatDecoderOptions) {
    super(options)
    this.#wantsLogprobs = options.logprobs
  }

  push({ event, data }: ServerSentEvent, out: GenerationEvent[]) {
    if (this.state === 'done') return
    if (this.#isBroken) throw notAChunk()
    if (this.state === 'open' && event === '' && this.#pushText(data, out)) return
    const payload = parseJson(data)
    if (!isRecord(payload)) this.#pushOther({ event, data }, out)
    else if (isUnknownEvent(event, payload)) this.#sawForeign = true
    else if (event !== 'error') {
      this.#pushChunk(payload, out)
      if (this.state === 'open') this.#learnFrame(payload, data)
    } else if (this.state === 'open') {
      throw errorFromPayload(payload) ?? reportedError({ error: payload })
    }
  }

  end(out: GenerationEvent[]) {
    if (this.state === 'open' && this.#hasTrailer && !this.#isBroken) this.#endUnreasoned(out)
    if (this.state === 'finishing') this.#finish(out)
    if (this.state === 'done') return
    throw this.#sawForeign && !this.#isStarted ? notAChunk() : truncatedResponse('a finish reason')
  }

  pushBody(body: string, out: GenerationEvent[]) {
    this.push({ event: '', data: body }, out)
    if (this.state !== 'open' || this.#isBroken) return
    const [choice] = readRecords(asRecord(parseJson(body))['choices'])
    if (!isRecord(choice?.['message'])) return
    if (choice['finish_reason'] === '') this.#beginFinish('', out)
    else this.#endUnreasoned(out)
  }

  /** Whether the chunk differed from the previous one only in its text. */
  #pushText(data: string, out: GenerationEvent[]): boolean {
    const text = readText(this, data)
    if (text === null) return false
    this.readText(this.#textField, text, out)
    return true
  }

  /** The end marker, an empty keep-alive line, or anything that is not a JSON object. */
  #pushOther({ event, data }: ServerSentEvent, out: GenerationEvent[]) {
    const text = data.trim()
    if (isDoneMarker(text)) {
      if (this.state === 'open') this.#endUnreasoned(out)
      this.end(out)
    } else if (text !== '' && this.state === 'open') {
      if (event === 'error') throw reportedError()
      if (!text.startsWith('{')) throw notAChunk()
      this.#isBroken = true
    }
  }

  /** Records the frame of a chunk that contains only text. */
  #learnFrame(chunk: JsonObject, data: string) {
    if (this.#wantsLogprobs || this.missesLeft === 0) return
    const plain = readPlainText(chunk)
    if (plain === null) return
    this.#textField = plain.field
    learnText(this, data, plain)
  }

  #pushChunk(chunk: JsonObject, out: GenerationEvent[]) {
    const { choices, usage, error } = chunk
    const hasChoices = Array.isArray(choices)
    if ((error || !hasChoices) && this.state === 'open') {
      const failure = errorFromPayload(chunk)
      if (failure !== null) throw failure
      if (!hasChoices && !usage) {
        this.#sawForeign = true
        return
      }
    }
    if (!this.#isStarted) {
      this.#isStarted = true
      out.push({ type: 'generation-start' })
    }
    if (usage) this.#usage = usage
    if (this.state === 'finishing') {
      // A chunk that contains only usage is the last one.
      if (usage && (!hasChoices || choices.length === 0)) this.#finish(out)
      return
    }
    this.#hasTrailer = isTrailer(chunk)
    // Content after it must be noticed.
    if (this.#hasTrailer) this.beforeText = ''
    this.citations.readChunk(chunk)
    if (!hasChoices) return
    for (const choice of choices) {
      if (this.state === 'open' && isRecord(choice)) this.#readChoice(choice, out)
    }
  }

  #readChoice(choice: JsonObject, out: GenerationEvent[]) {
    const { index, delta, message, finish_reason: rawReason, usage } = choice
    // Only one choice was requested.
    if (typeof index === 'number' && index !== 0) return
    if (usage) this.#usage = usage
    const isLast = typeof rawReason === 'string' && rawReason !== ''
    const logprobs = this.#wantsLogprobs
      ? readLogprobs(asRecord(choice['logprobs'])['content'])
      : undefined
    if (isRecord(delta)) this.readDelta(delta, out, logprobs)
    if (isRecord(message)) {
      if (isLast) this.readMessage(message, out, logprobs)
      else if (!isRecord(delta)) this.readDelta(message, out, logprobs)
    }
    if (isLast) this.#beginFinish(rawReason, out)
  }

  /** The upstream marked the end without a finish reason: a stop, if the response is whole. */
  #endUnreasoned(out: GenerationEvent[]) {
    if (this.isWhole) this.#beginFinish('', out)
  }

  /** The model has finished; usage may follow. */
  #beginFinish(rawReason: string, out: GenerationEvent[]) {
    const reason = readFinishReason(rawReason)
    if (reason === null) {
      throw new AppError('upstream_error', 'The upstream failed during its response.', {
        cause: { finishReason: rawReason },
      })
    }
    this.endContent(out, reason !== 'stop')
    // Many servers send "stop" after a tool call; the call counts for more.
    const called = reason === 'stop' && this.hasCalls
    this.#ending = { reason: called ? 'tool-calls' : reason, rawReason: rawReason || null }
    this.state = 'finishing'
  }

  #finish(out: GenerationEvent[]) {
    out.push({ type: 'finish', ...this.#ending, usage: readUsage(this.#usage) })
    this.state = 'done'
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

function notAChunk(): AppError {
  return invalidResponse('sent an event that is not part of a chat completion')
}
