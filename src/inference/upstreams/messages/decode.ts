import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { GenerationEvent, RelayFrame } from '#inference/events.ts'
import type { Decoder } from '#inference/exchange.ts'
import { errorFromPayload } from '#inference/upstream-error.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject, parseJson, withoutNulls } from '#lib/json.ts'
import { type BlockReader, type BlockReaderOptions, createBlockReader } from './blocks.ts'
import { type Ending, isCut, readEnding } from './finish.ts'
import { frameOf } from './frame.ts'
import { type BlockOrder, createBlockOrder } from './order.ts'
import { relayOfPayload } from './relayed-error.ts'
import { addUsage, createUsageCount, readUsage, type UsageCount } from './usage.ts'
import { divideMessage } from './whole.ts'
import { readText } from './wire.ts'

export type DecoderOptions = BlockReaderOptions & {
  /** Whether the caller speaks the same protocol, and gets what comes as frames of it too. */
  relays: boolean
}

type State = {
  phase: Decoder['state']
  readonly options: DecoderOptions
  readonly order: BlockOrder
  readonly reader: BlockReader
  readonly usage: UsageCount
  /** Frames that were not asked for yet. */
  frames: RelayFrame[]
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
  const state: State = {
    phase: 'open',
    options,
    order: createBlockOrder(),
    reader: createBlockReader(options),
    usage: createUsageCount(),
    frames: [],
    messageId: null,
    hasBlocks: false,
    sawForeign: false,
    broken: false,
    ending: { reason: 'stop', rawReason: '' },
    early: null,
  }
  return {
    push: (message, out) => push(state, message, out),
    end: (out) => end(state, out),
    get state() {
      return state.phase
    },
    takeRelay() {
      if (state.frames.length === 0) return undefined
      const { frames } = state
      state.frames = []
      return { protocol: 'messages', frames, maker: options.maker }
    },
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
    case 'message':
      start(state, { payload: { type: 'message_start', message: payload }, data: '' }, out)
      end(state, out)
      return
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

/** What is no part of a message is an error, or nothing that we could tell anybody. */
function pushUnknown(state: State, payload: JsonObject): void {
  if (state.phase !== 'open') return
  const error = errorFromPayload(payload)
  if (error === null) {
    state.sawForeign = true
    return
  }
  const relay = state.options.relays ? relayOfPayload(payload) : null
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
  relay(state, frameOf({ ...payload, message: complete(message) }))
  const { blocks, delta } = divideMessage(message)
  for (const part of blocks) pushBlock(state, { payload: part, data: '' }, out)
  if (readText(message['stop_reason']) !== '') state.early = delta
}

/** Whether a start is as it should be, and holds nothing of what is still to be told. */
function isOpening({ content, stop_reason, usage }: JsonObject): boolean {
  const isEmpty = Array.isArray(content) && content.length === 0
  const { input_tokens: input, output_tokens: output } = asRecord(usage)
  const isCounted = typeof input === 'number' && typeof output === 'number'
  return isEmpty && isCounted && (stop_reason === null || stop_reason === undefined)
}

/** The fields that strict clients read at once. */
function complete(message: JsonObject): JsonObject {
  return {
    type: 'message',
    role: 'assistant',
    ...message,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: { input_tokens: 0, output_tokens: 0, ...withoutNulls(asRecord(message['usage'])) },
  }
}

function pushBlock(state: State, { payload, data }: Arrival, out: GenerationEvent[]): void {
  begin(state, out)
  state.hasBlocks = true
  const frames: RelayFrame[] = []
  state.order.push(payload, data, frames)
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
  state.order.close(frames)
  readFrames(state, frames, out)
  state.ending = readEnding(word, stopSequence, state.reader.hasToolCalls())
  state.reader.end(out, isCut(state.ending))
  state.phase = 'finishing'
}

function readFrames(state: State, frames: readonly RelayFrame[], out: GenerationEvent[]): void {
  for (const frame of frames) {
    relay(state, frame)
    state.reader.read(frame, out)
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
  if (state.options.relays) state.frames.push(frame)
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
