import {
  invalidResponse,
  isDoneMarker,
  reportedError,
  truncatedResponse,
} from '#inference/decode-errors.ts'
import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { GenerationEvent, Relay, RelayFrame } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { readString } from '#inference/upstream-fields.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson, withoutNulls } from '#lib/json.ts'
import { BlockOrder } from './block-order.ts'
import { BlockReader, type BlockReaderOptions } from './blocks.ts'
import {
  createUsageCounts,
  type Ending,
  isTruncated,
  readEnding,
  updateUsage,
  usageOf,
} from './read.ts'
import { type Frame, frameOf, relayStreamError } from './relay.ts'
import { fillMessage, isEmptyStart, splitMessage } from './whole-message.ts'

type DecoderOptions = BlockReaderOptions & {
  /** Whether the client speaks the same protocol and receives the frames. */
  relays: boolean
}

/**
 * Decodes a response of the Messages protocol, streamed or whole. Its blocks are first put in order;
 * the events, and the frames for a client of the same protocol, are made from the ordered frames.
 */
export class MessagesDecoder implements Decoder {
  readonly #relays: boolean
  readonly #sealedBy: string
  readonly #order = new BlockOrder()
  readonly #reader: BlockReader
  readonly #usage = createUsageCounts()
  #phase: Decoder['state'] = 'open'
  /** Frames since the last `takeRelay`; null where there are none. */
  #frames: RelayFrame[] | null = null
  /** The upstream's id of the message; null before its start. */
  #messageId: string | null = null
  #hasBlocks = false
  /** Objects arrived that are not part of a message. */
  #sawForeign = false
  /** The last data was truncated JSON; only the end of the body may follow it. */
  #isBroken = false
  #ending: Ending = { reason: 'stop', rawReason: '' }
  /** The `message_delta` of a message that was already complete in its start. */
  #pendingDelta: JsonObject | null = null

  constructor(options: DecoderOptions) {
    this.#relays = options.relays
    this.#sealedBy = options.sealedBy
    this.#reader = new BlockReader(options)
  }

  get state() {
    return this.#phase
  }

  push({ event, data }: ServerSentEvent, out: GenerationEvent[]) {
    if (this.#phase === 'done') return
    if (this.#isBroken) throw notAMessage()
    const parsed = parseJson(data)
    if (!isRecord(parsed)) {
      this.#pushOther({ event, data }, out)
    } else if (event === 'error' && parsed['type'] !== 'error') {
      // llama.cpp sends the error alone, whose type is that of the error.
      this.#pushUnknown({
        error: parsed,
        ...(isRecord(parsed['error']) ? parsed : {}),
        type: event,
      })
    } else if (typeof parsed['type'] === 'string' || !eventNames.has(event)) {
      this.#pushPayload({ payload: parsed, data }, out)
    } else {
      this.#pushPayload({ payload: { ...parsed, type: event }, data: '' }, out)
    }
  }

  end(out: GenerationEvent[]) {
    const isWhole = this.#phase === 'open' && this.#pendingDelta !== null
    if (isWhole || this.#phase === 'finishing')
      this.#stop({ payload: { type: 'message_stop' }, data: '' }, out)
    if (this.#phase === 'done') return
    throw this.#sawForeign && this.#messageId === null ? notAMessage() : truncated()
  }

  pushBody(body: string, out: GenerationEvent[]) {
    const message = parseJson(body)
    if (!isRecord(message)) this.#pushOther({ event: '', data: body }, out)
    else if (message['type'] !== 'message') this.#pushUnknown(message)
    else this.#start({ payload: { type: 'message_start', message }, data: '' }, out)
  }

  takeRelay(): Relay | undefined {
    const frames = this.#frames
    if (frames === null) return undefined
    this.#frames = null
    return { protocol: 'messages', frames, maker: this.#sealedBy }
  }

  /** The end marker of another protocol, a proxy's keep-alive, or the end of a truncated body. */
  #pushOther({ event, data }: ServerSentEvent, out: GenerationEvent[]) {
    if (isDoneMarker(data)) this.end(out)
    else if (event === 'error' && this.#phase === 'open') throw reportedError()
    else if (data.trimStart().startsWith('{')) this.#isBroken = this.#phase === 'open'
  }

  #pushPayload(frame: Frame, out: GenerationEvent[]) {
    const { payload } = frame
    switch (payload['type']) {
      case 'message_start':
        this.#start(frame, out)
        return
      case 'content_block_start':
      case 'content_block_delta':
      case 'content_block_stop':
        if (this.#phase === 'open') this.#pushBlock(frame, out)
        return
      case 'message_delta':
        this.#pushMessageDelta(frame, out)
        return
      case 'message_stop':
        this.#stop(frame, out)
        return
      case 'ping':
        return
      default:
        this.#pushUnknown(payload)
    }
  }

  /** An error, or an event that the protocol does not define, which is ignored. */
  #pushUnknown(payload: JsonObject) {
    if (this.#phase !== 'open') return
    const { type, object } = payload
    const isError = typeof type !== 'string' || type === 'error' || object === 'error'
    const error = isError ? errorFromPayload(payload) : null
    if (error === null) {
      this.#sawForeign = true
      return
    }
    const relay = this.#relays ? relayStreamError(payload) : null
    if (relay === null) throw error
    const { cause, kind, message, retryAfterS, wireCode } = error
    const wait = retryAfterS === undefined ? {} : { retryAfterS }
    throw new AppError(kind, message, { code: wireCode, ...wait, relay, cause })
  }

  /** A second message is an error: the blocks of the first one have been emitted. */
  #start({ payload, data }: Frame, out: GenerationEvent[]) {
    if (this.#phase !== 'open') return
    const message = asRecord(payload['message'])
    const id = readString(message['id'])
    if (this.#messageId !== null) {
      const isSame = this.#messageId === '' || id === this.#messageId
      if (!this.#hasBlocks || isSame) return
      throw new AppError(
        'upstream_truncated',
        'The upstream ended its message early and began another one.',
      )
    }
    this.#messageId = id
    updateUsage(this.#usage, message['usage'])
    out.push({ type: 'generation-start' })
    if (isEmptyStart(message)) {
      this.#relay(frameOf(payload, data))
      return
    }
    this.#relay(frameOf({ ...payload, message: fillMessage(message) }))
    const { blocks, delta } = splitMessage(message)
    for (const part of blocks) this.#pushBlock({ payload: part, data: '' }, out)
    if (readString(message['stop_reason']) !== '') this.#pendingDelta = delta
  }

  #pushBlock(frame: Frame, out: GenerationEvent[]) {
    this.#begin(out)
    this.#hasBlocks = true
    const frames: RelayFrame[] = []
    this.#order.push(frame, frames)
    this.#readFrames(frames, out)
  }

  #begin(out: GenerationEvent[]) {
    if (this.#messageId === null) {
      this.#start({ payload: { type: 'message_start', message: {} }, data: '' }, out)
    }
  }

  #pushMessageDelta({ payload, data }: Frame, out: GenerationEvent[]) {
    this.#begin(out)
    updateUsage(this.#usage, payload['usage'])
    const delta = asRecord(payload['delta'])
    const stopReason = readString(delta['stop_reason'])
    if (this.#phase === 'open') {
      // Usage before the end is repeated at the end.
      if (stopReason === '') return
      this.#closeBlocks({ stopReason, stopSequence: delta['stop_sequence'] }, out)
    }
    const isCall = stopReason === 'end_turn' && this.#ending.reason === 'tool-calls'
    const counts = withoutNulls(asRecord(payload['usage']))
    const corrected = correctEnd(delta, isCall)
    if ('output_tokens' in counts && corrected === delta) {
      this.#relay(frameOf(payload, data))
      return
    }
    const usage = { output_tokens: this.#usage.output, ...counts }
    this.#relay(frameOf({ ...payload, delta: corrected, usage }))
  }

  /** The model has finished; only usage may follow. */
  #closeBlocks(
    { stopReason, stopSequence }: { stopReason: string; stopSequence: unknown },
    out: GenerationEvent[],
  ) {
    const frames: RelayFrame[] = []
    this.#order.stopAll(frames)
    this.#readFrames(frames, out)
    this.#ending = readEnding(stopReason, stopSequence, this.#reader.hasToolCalls())
    this.#reader.end(out, isTruncated(this.#ending))
    this.#phase = 'finishing'
  }

  #readFrames(frames: readonly RelayFrame[], out: GenerationEvent[]) {
    for (const frame of frames) {
      this.#relay(frame)
      this.#reader.read(frame, out)
    }
  }

  #stop({ payload, data }: Frame, out: GenerationEvent[]) {
    if (this.#phase === 'open' && this.#pendingDelta !== null) {
      this.#pushMessageDelta({ payload: this.#pendingDelta, data: '' }, out)
    }
    if (this.#phase !== 'finishing') throw truncated()
    this.#relay(frameOf(payload, data))
    out.push({ ...this.#ending, type: 'finish', usage: usageOf(this.#usage) })
    this.#phase = 'done'
  }

  #relay(frame: RelayFrame) {
    if (!this.#relays) return
    this.#frames ??= []
    this.#frames.push(frame)
  }
}

/** Event names that stand for the type of data without one. */
const eventNames: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'error',
  'ping',
])

function notAMessage(): AppError {
  return invalidResponse('sent an event that is not part of a message')
}

function truncated(): AppError {
  return truncatedResponse('a stop reason')
}

/** The same object where nothing is missing: some servers omit the stop sequence or its reason. */
function correctEnd(delta: JsonObject, isCall: boolean): JsonObject {
  const { stop_reason: reason, stop_sequence: sequence = null } = delta
  if (isCall) return { ...delta, stop_reason: 'tool_use', stop_sequence: sequence }
  const isStopped = reason === 'end_turn' && typeof sequence === 'string'
  if (isStopped) return { ...delta, stop_reason: 'stop_sequence' }
  return 'stop_sequence' in delta ? delta : { ...delta, stop_sequence: sequence }
}
