import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { GenerationEvent, Relay, RelayFrame } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson, withoutNulls } from '#lib/json.ts'
import {
  invalidResponse,
  isDoneMarker,
  reportedError,
  truncatedResponse,
} from '../shared/errors.ts'
import { readString } from '../shared/read.ts'
import {
  type BlockReader,
  type BlockReaderOptions,
  createBlockReader,
  endBlocks,
  hasToolCalls,
  readFrame,
} from './blocks.ts'
import { type BlockOrder, createBlockOrder, pushOrdered, stopAllBlocks } from './order.ts'
import {
  createUsageCounts,
  type Ending,
  isTruncated,
  readEnding,
  type UsageCounts,
  updateUsage,
  usageOf,
} from './read.ts'
import { type Frame, frameOf, relayStreamError } from './relay.ts'
import { fillMessage, isEmptyStart, splitMessage } from './whole.ts'

export type DecoderOptions = BlockReaderOptions & {
  /** Whether the client speaks the same protocol and receives the frames. */
  relays: boolean
}

type State = {
  phase: Decoder['state']
  readonly relays: boolean
  readonly sealedBy: string
  readonly order: BlockOrder
  readonly reader: BlockReader
  readonly usage: UsageCounts
  /** Frames since the last `takeRelay`; null where there are none. */
  frames: RelayFrame[] | null
  /** The upstream's id of the message; null before its start. */
  messageId: string | null
  hasBlocks: boolean
  /** Objects arrived that are not part of a message. */
  sawForeign: boolean
  /** The last data was truncated JSON; only the end of the body may follow it. */
  isBroken: boolean
  ending: Ending
  /** The `message_delta` of a message that was already complete in its start. */
  pendingDelta: JsonObject | null
}

/**
 * Decodes a response of the Messages protocol, streamed or whole. Its blocks are first put in order;
 * the events, and the frames for a client of the same protocol, are made from the ordered frames.
 */
export function createMessagesDecoder(options: DecoderOptions): Decoder {
  return new MessagesDecoder(options)
}

class MessagesDecoder implements Decoder {
  readonly #state: State

  constructor(options: DecoderOptions) {
    this.#state = {
      phase: 'open',
      relays: options.relays,
      sealedBy: options.sealedBy,
      order: createBlockOrder(),
      reader: createBlockReader(options),
      usage: createUsageCounts(),
      frames: null,
      messageId: null,
      hasBlocks: false,
      sawForeign: false,
      isBroken: false,
      ending: { reason: 'stop', rawReason: '' },
      pendingDelta: null,
    }
  }

  get state() {
    return this.#state.phase
  }

  push(event: ServerSentEvent, out: GenerationEvent[]) {
    push(this.#state, event, out)
  }

  pushBody(body: string, out: GenerationEvent[]) {
    const message = parseJson(body)
    if (!isRecord(message)) pushOther(this.#state, { event: '', data: body }, out)
    else if (message['type'] !== 'message') pushUnknown(this.#state, message)
    else start(this.#state, { payload: { type: 'message_start', message }, data: '' }, out)
  }

  end(out: GenerationEvent[]) {
    end(this.#state, out)
  }

  takeRelay(): Relay | undefined {
    const { frames, sealedBy: maker } = this.#state
    if (frames === null) return undefined
    this.#state.frames = null
    return { protocol: 'messages', frames, maker }
  }
}

function push(state: State, { event, data }: ServerSentEvent, out: GenerationEvent[]): void {
  if (state.phase === 'done') return
  if (state.isBroken) throw notAMessage()
  const parsed = parseJson(data)
  if (!isRecord(parsed)) {
    pushOther(state, { event, data }, out)
  } else if (typeof parsed['type'] === 'string' || !eventNames.has(event)) {
    pushPayload(state, { payload: parsed, data }, out)
  } else {
    pushPayload(state, { payload: { ...parsed, type: event }, data: '' }, out)
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

/** The end marker of another protocol, a proxy's keep-alive, or the end of a truncated body. */
function pushOther(state: State, { event, data }: ServerSentEvent, out: GenerationEvent[]): void {
  if (isDoneMarker(data)) end(state, out)
  else if (event === 'error' && state.phase === 'open') throw reportedError()
  else if (data.trimStart().startsWith('{')) state.isBroken = state.phase === 'open'
}

function pushPayload(state: State, frame: Frame, out: GenerationEvent[]): void {
  const { payload } = frame
  switch (payload['type']) {
    case 'message_start':
      start(state, frame, out)
      return
    case 'content_block_start':
    case 'content_block_delta':
    case 'content_block_stop':
      if (state.phase === 'open') pushBlock(state, frame, out)
      return
    case 'message_delta':
      pushMessageDelta(state, frame, out)
      return
    case 'message_stop':
      stop(state, frame, out)
      return
    case 'ping':
      return
    default:
      pushUnknown(state, payload)
  }
}

/** An error, or an event that the protocol does not define, which is ignored. */
function pushUnknown(state: State, payload: JsonObject): void {
  if (state.phase !== 'open') return
  const { type, object } = payload
  const isError = typeof type !== 'string' || type === 'error' || object === 'error'
  const error = isError ? errorFromPayload(payload) : null
  if (error === null) {
    state.sawForeign = true
    return
  }
  const relay = state.relays ? relayStreamError(payload) : null
  if (relay === null) throw error
  const { cause, kind, message, retryAfterS, wireCode } = error
  const wait = retryAfterS === undefined ? {} : { retryAfterS }
  throw new AppError(kind, message, { code: wireCode, ...wait, relay, cause })
}

/** A second message is an error: the blocks of the first one have been emitted. */
function start(state: State, { payload, data }: Frame, out: GenerationEvent[]): void {
  if (state.phase !== 'open') return
  const message = asRecord(payload['message'])
  const id = readString(message['id'])
  if (state.messageId !== null) {
    const isSame = state.messageId === '' || id === state.messageId
    if (!state.hasBlocks || isSame) return
    throw new AppError(
      'upstream_truncated',
      'The upstream ended its message early and began another one.',
    )
  }
  state.messageId = id
  updateUsage(state.usage, message['usage'])
  out.push({ type: 'generation-start' })
  if (isEmptyStart(message)) {
    relay(state, frameOf(payload, data))
    return
  }
  relay(state, frameOf({ ...payload, message: fillMessage(message) }))
  const { blocks, delta } = splitMessage(message)
  for (const part of blocks) pushBlock(state, { payload: part, data: '' }, out)
  if (readString(message['stop_reason']) !== '') state.pendingDelta = delta
}

function pushBlock(state: State, frame: Frame, out: GenerationEvent[]): void {
  begin(state, out)
  state.hasBlocks = true
  const frames: RelayFrame[] = []
  pushOrdered(state.order, frame, frames)
  readFrames(state, frames, out)
}

function begin(state: State, out: GenerationEvent[]): void {
  if (state.messageId === null) {
    start(state, { payload: { type: 'message_start', message: {} }, data: '' }, out)
  }
}

function pushMessageDelta(state: State, { payload, data }: Frame, out: GenerationEvent[]): void {
  begin(state, out)
  updateUsage(state.usage, payload['usage'])
  const delta = asRecord(payload['delta'])
  const stopReason = readString(delta['stop_reason'])
  if (state.phase === 'open') {
    // Usage before the end is repeated at the end.
    if (stopReason === '') return
    closeBlocks(state, { stopReason, stopSequence: delta['stop_sequence'] }, out)
  }
  const isCall = stopReason === 'end_turn' && state.ending.reason === 'tool-calls'
  const counts = withoutNulls(asRecord(payload['usage']))
  const isUnchanged = 'output_tokens' in counts && isRecord(payload['delta']) && !isCall
  const usage = { output_tokens: state.usage.output, ...counts }
  const corrected = isCall ? { ...delta, stop_reason: 'tool_use' } : delta
  relay(
    state,
    isUnchanged ? frameOf(payload, data) : frameOf({ ...payload, delta: corrected, usage }),
  )
}

/** The model has finished; only usage may follow. */
function closeBlocks(
  state: State,
  { stopReason, stopSequence }: { stopReason: string; stopSequence: unknown },
  out: GenerationEvent[],
): void {
  const frames: RelayFrame[] = []
  stopAllBlocks(state.order, frames)
  readFrames(state, frames, out)
  state.ending = readEnding(stopReason, stopSequence, hasToolCalls(state.reader))
  endBlocks(state.reader, out, isTruncated(state.ending))
  state.phase = 'finishing'
}

function readFrames(state: State, frames: readonly RelayFrame[], out: GenerationEvent[]): void {
  for (const frame of frames) {
    relay(state, frame)
    readFrame(state.reader, frame, out)
  }
}

function stop(state: State, { payload, data }: Frame, out: GenerationEvent[]): void {
  if (state.phase === 'open' && state.pendingDelta !== null) {
    pushMessageDelta(state, { payload: state.pendingDelta, data: '' }, out)
  }
  if (state.phase !== 'finishing') throw truncated()
  relay(state, frameOf(payload, data))
  out.push({ type: 'finish', ...state.ending, usage: usageOf(state.usage) })
  state.phase = 'done'
}

function end(state: State, out: GenerationEvent[]): void {
  const isWhole = state.phase === 'open' && state.pendingDelta !== null
  if (isWhole || state.phase === 'finishing')
    stop(state, { payload: { type: 'message_stop' }, data: '' }, out)
  if (state.phase === 'done') return
  throw state.sawForeign && state.messageId === null ? notAMessage() : truncated()
}

function relay(state: State, frame: RelayFrame): void {
  if (!state.relays) return
  state.frames ??= []
  state.frames.push(frame)
}

function notAMessage(): AppError {
  return invalidResponse('sent an event that is not part of a message')
}

function truncated(): AppError {
  return truncatedResponse('a stop reason')
}
