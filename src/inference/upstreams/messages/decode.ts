import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { GenerationEvent, Relay, RelayFrame } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson, withoutNulls } from '#lib/json.ts'
import {
  type BlockReader,
  type BlockReaderOptions,
  createBlockReader,
  endBlocks,
  hasToolCalls,
  readFrame,
} from './blocks.ts'
import { type Ending, isCut, readEnding } from './finish.ts'
import { frameOf } from './frame.ts'
import { type BlockOrder, closeOrder, createBlockOrder, pushInOrder } from './order.ts'
import { relayOfPayload } from './relayed-error.ts'
import { addUsage, createUsageCount, readUsage, type UsageCount } from './usage.ts'
import { completeMessage, divideMessage, isOpening } from './whole.ts'
import { readText } from './wire.ts'

export type DecoderOptions = BlockReaderOptions & {
  /** Whether the caller speaks the same protocol, and gets what comes as frames of it too. */
  relays: boolean
}

type State = {
  phase: Decoder['state']
  readonly relays: boolean
  readonly maker: string
  readonly order: BlockOrder
  readonly reader: BlockReader
  readonly usage: UsageCount
  /** Frames that were not asked for yet; null where there are none. */
  frames: RelayFrame[] | null
  /** The upstream's id of the message; null before it began. */
  messageId: string | null
  hasBlocks: boolean
  /** Objects came that are no part of a message. */
  sawForeign: boolean
  /** The last data was JSON that breaks off; only the end of the body may follow it. */
  broken: boolean
  ending: Ending
  /** How the message ends, where already its start tells it: it was whole by then. */
  early: JsonObject | null
}

/**
 * Reads an answer of the Messages protocol, streamed or whole. Everything passes through one order of
 * frames, from which both the events and what a caller of the same protocol gets are made.
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
      maker: options.maker,
      order: createBlockOrder(),
      reader: createBlockReader(options),
      usage: createUsageCount(),
      frames: null,
      messageId: null,
      hasBlocks: false,
      sawForeign: false,
      broken: false,
      ending: { reason: 'stop', rawReason: '' },
      early: null,
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
    const { frames, maker } = this.#state
    if (frames === null) return undefined
    this.#state.frames = null
    return { protocol: 'messages', frames, maker }
  }
}

function push(state: State, { event, data }: ServerSentEvent, out: GenerationEvent[]): void {
  if (state.phase === 'done') return
  if (state.broken) throw foreign()
  const parsed = parseJson(data)
  if (!isRecord(parsed)) {
    pushOther(state, { event, data }, out)
  } else if (typeof parsed['type'] === 'string' || !eventNames.has(event)) {
    pushPayload(state, { payload: parsed, data }, out)
  } else {
    pushPayload(state, { payload: { ...parsed, type: event }, data: '' }, out)
  }
}

/** Where the data does not say what it is, the name of its event does. */
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

/** A closing marker of another protocol, the keep-alive of a proxy, or the cut end of a body. */
function pushOther(state: State, { event, data }: ServerSentEvent, out: GenerationEvent[]): void {
  const text = data.trim()
  if (/^"?\[done\]"?$/i.test(text)) end(state, out)
  else if (event === 'error' && state.phase === 'open') throw reportedError()
  else if (text.startsWith('{')) state.broken = state.phase === 'open'
}

type Arrival = { payload: JsonObject; data: string }

function pushPayload(state: State, arrival: Arrival, out: GenerationEvent[]): void {
  const { payload } = arrival
  switch (payload['type']) {
    case 'message_start':
      start(state, arrival, out)
      return
    case 'content_block_start':
    case 'content_block_delta':
    case 'content_block_stop':
      if (state.phase === 'open') pushBlock(state, arrival, out)
      return
    case 'message_delta':
      pushDelta(state, arrival, out)
      return
    case 'message_stop':
      stop(state, arrival, out)
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
  const relay = state.relays ? relayOfPayload(payload) : null
  if (relay === null) throw error
  const { cause, kind, message, retryAfterS, wireCode } = error
  const wait = retryAfterS === undefined ? {} : { retryAfterS }
  throw new AppError(kind, message, { code: wireCode, ...wait, relay, cause })
}

/** A server that begins anew in the middle cannot be believed: what it said before has gone out. */
function start(state: State, { payload, data }: Arrival, out: GenerationEvent[]): void {
  if (state.phase !== 'open') return
  const message = asRecord(payload['message'])
  const id = readText(message['id'])
  if (state.messageId !== null) {
    const isSame = state.messageId === '' || id === state.messageId
    if (!state.hasBlocks || isSame) return
    throw new AppError(
      'upstream_truncated',
      'The upstream broke off its answer and began another one.',
    )
  }
  state.messageId = id
  addUsage(state.usage, message['usage'])
  out.push({ type: 'generation-start' })
  if (isOpening(message)) {
    relay(state, frameOf(payload, data))
    return
  }
  relay(state, frameOf({ ...payload, message: completeMessage(message) }))
  const { blocks, delta } = divideMessage(message)
  for (const part of blocks) pushBlock(state, { payload: part, data: '' }, out)
  if (readText(message['stop_reason']) !== '') state.early = delta
}

function pushBlock(state: State, arrival: Arrival, out: GenerationEvent[]): void {
  begin(state, out)
  state.hasBlocks = true
  const frames: RelayFrame[] = []
  pushInOrder(state.order, arrival, frames)
  readFrames(state, frames, out)
}

function begin(state: State, out: GenerationEvent[]): void {
  if (state.messageId === null) {
    start(state, { payload: { type: 'message_start', message: {} }, data: '' }, out)
  }
}

function pushDelta(state: State, { payload, data }: Arrival, out: GenerationEvent[]): void {
  begin(state, out)
  addUsage(state.usage, payload['usage'])
  const delta = asRecord(payload['delta'])
  const word = readText(delta['stop_reason'])
  if (state.phase === 'open') {
    // Counts in the middle of a message are repeated at its end.
    if (word === '') return
    closeBlocks(state, { word, stopSequence: delta['stop_sequence'] }, out)
  }
  const isCall = word === 'end_turn' && state.ending.reason === 'tool-calls'
  const given = withoutNulls(asRecord(payload['usage']))
  const isWhole = 'output_tokens' in given && isRecord(payload['delta']) && !isCall
  const usage = { output_tokens: state.usage.outputTokens, ...given }
  const told = isCall ? { ...delta, stop_reason: 'tool_use' } : delta
  relay(state, isWhole ? frameOf(payload, data) : frameOf({ ...payload, delta: told, usage }))
}

/** The model is done; only counts may still come. */
function closeBlocks(
  state: State,
  { word, stopSequence }: { word: string; stopSequence: unknown },
  out: GenerationEvent[],
): void {
  const frames: RelayFrame[] = []
  closeOrder(state.order, frames)
  readFrames(state, frames, out)
  state.ending = readEnding(word, stopSequence, hasToolCalls(state.reader))
  endBlocks(state.reader, out, isCut(state.ending))
  state.phase = 'finishing'
}

function readFrames(state: State, frames: readonly RelayFrame[], out: GenerationEvent[]): void {
  for (const frame of frames) {
    relay(state, frame)
    readFrame(state.reader, frame, out)
  }
}

function stop(state: State, { payload, data }: Arrival, out: GenerationEvent[]): void {
  if (state.phase === 'open' && state.early !== null) {
    pushDelta(state, { payload: state.early, data: '' }, out)
  }
  if (state.phase !== 'finishing') throw truncated()
  relay(state, frameOf(payload, data))
  out.push({ type: 'finish', ...state.ending, usage: readUsage(state.usage) })
  state.phase = 'done'
}

function end(state: State, out: GenerationEvent[]): void {
  const isWhole = state.phase === 'open' && state.early !== null
  if (isWhole || state.phase === 'finishing')
    stop(state, { payload: { type: 'message_stop' }, data: '' }, out)
  if (state.phase === 'done') return
  throw state.sawForeign && state.messageId === null ? foreign() : truncated()
}

function relay(state: State, frame: RelayFrame): void {
  if (!state.relays) return
  state.frames ??= []
  state.frames.push(frame)
}

function foreign(): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream sent something that is no part of a message.',
  )
}

function truncated(): AppError {
  return new AppError(
    'upstream_truncated',
    'The upstream ended its answer without a stop reason: the answer was truncated.',
  )
}

function reportedError(): AppError {
  return new AppError('upstream_error', 'The upstream reported an error.')
}
