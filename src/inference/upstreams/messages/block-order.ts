import { invalidResponse } from '#inference/decode-errors.ts'
import type { RelayFrame } from '#inference/events.ts'
import { readString } from '#inference/upstream-fields.ts'
import { newId } from '#lib/id.ts'
import { asRecord, isRecord, type JsonObject, withoutNulls } from '#lib/json.ts'
import { type Frame, frameOf } from './relay.ts'
import { splitBlock } from './whole-message.ts'
import { blockOfDelta, isToolUse, legalCallId } from './wire.ts'

/**
 * Serialises the blocks of a message: one after the other, numbered without gaps, each with its start
 * and its stop. Servers omit stops, number every block 0, or interleave calls, which clients cannot
 * handle. Frames that are in order are forwarded unchanged.
 */
export type BlockOrder = {
  open: Block | null
  queued: Block[]
  nextIndex: number
  bufferedChars: number
  /** The ids of the calls so far. */
  readonly callIds: Set<string>
}

type Block = {
  /** The upstream's index of the block; null where it sent none. */
  readonly wireIndex: number | null
  readonly type: string
  /** The id of a call, which distinguishes a repeated start from another call at the same index. */
  readonly id: string
  /** The index that is sent to the client; -1 while the block is queued. */
  index: number
  stopped: boolean
  /** The start of a text block until its first character: clients reject empty text blocks. */
  pendingStart: Frame | null
  /** Frames that arrived while another block was open. */
  buffered: Frame[]
}

/** The most that is buffered until another block ends, in characters. */
const bufferedCharsMax = 8_388_608
/** The most blocks of a message. */
const blocksMax = 4_096

export function createBlockOrder(): BlockOrder {
  return { open: null, queued: [], nextIndex: 0, bufferedChars: 0, callIds: new Set() }
}

/** Handles `content_block_start`, `_delta` and `_stop`, in any order. */
export function pushOrdered(order: BlockOrder, { payload, data }: Frame, out: RelayFrame[]): void {
  const { type, index } = payload
  const arrival = { payload, data, wireIndex: typeof index === 'number' ? index : null, out }
  if (type === 'content_block_start') handleStart(order, arrival)
  else if (type === 'content_block_stop') handleStop(order, arrival)
  else handleDelta(order, arrival)
}

/** Stops every block at the end of the message. */
export function stopAllBlocks(order: BlockOrder, out: RelayFrame[]): void {
  stopOpen(order, out)
  while (order.queued.length > 0) {
    openQueued(order, out)
    stopOpen(order, out)
  }
}

type Arrival = Frame & { wireIndex: number | null; out: RelayFrame[] }

function handleStart(order: BlockOrder, { payload, data, wireIndex, out }: Arrival): void {
  const received = payload['content_block']
  if (!isRecord(received)) return
  const { shell, deltas } = splitContent(fillShell(received))
  const block = createBlock(shell, wireIndex)
  const isRepeated = (other: Block) =>
    !other.stopped &&
    other.wireIndex === wireIndex &&
    other.type === block.type &&
    other.id === block.id
  if ([order.open, ...order.queued].some((other) => other !== null && isRepeated(other))) return
  const unique = withUniqueId(order, shell)
  const isUnchanged = unique === received
  const start = isUnchanged ? payload : { ...payload, content_block: unique }
  beginBlock(order, block, { payload: start, data: isUnchanged ? data : '', out })
  for (const delta of deltas) addToBlock(order, block, { payload: deltaOf(delta), data: '', out })
}

/** Some servers send the same id for every call, which would make their results ambiguous. */
function withUniqueId({ callIds }: BlockOrder, shell: JsonObject): JsonObject {
  if (shell['type'] !== 'tool_use') return shell
  const id = readString(shell['id'])
  const unique = callIds.has(id) ? newId('toolu_') : id
  callIds.add(unique)
  return unique === id ? shell : { ...shell, id: unique }
}

function createBlock(shell: JsonObject, wireIndex: number | null): Block {
  return {
    wireIndex,
    type: readString(shell['type']),
    id: readString(shell['id']),
    index: -1,
    stopped: false,
    pendingStart: null,
    buffered: [],
  }
}

/** Text and thinking belong in deltas; some servers put the first of it into the start. */
function splitContent(shell: JsonObject): { shell: JsonObject; deltas: JsonObject[] } {
  const { type } = shell
  const isText = type === 'text' || type === 'thinking'
  const content = [shell['text'], shell['thinking'], shell['signature']].map(readString).join('')
  return isText && content !== '' ? splitBlock(shell) : { shell, deltas: [] }
}

function deltaOf(delta: JsonObject): JsonObject {
  return { type: 'content_block_delta', index: -1, delta }
}

/** Continues a block, or buffers the frame while the block is queued. */
function addToBlock(order: BlockOrder, block: Block, frame: Frame & { out: RelayFrame[] }): void {
  if (block === order.open) emit(order, block, frame)
  else buffer(order, block, frame)
}

/** Adds the fields that strict clients require where a server omitted them. */
function fillShell(shell: JsonObject): JsonObject {
  const type = readString(shell['type'])
  if (type === 'text' && typeof shell['text'] !== 'string') return { ...shell, text: '' }
  if (type === 'thinking') {
    const isWhole = typeof shell['thinking'] === 'string' && typeof shell['signature'] === 'string'
    return isWhole ? shell : { thinking: '', signature: '', ...withoutNulls(shell) }
  }
  if (type !== 'tool_use') return shell
  if (readString(shell['name']) === '') {
    throw invalidResponse('called a tool without a name')
  }
  const received = readString(shell['id'])
  const id = received === '' ? newId('toolu_') : legalCallId(received)
  if (id === received && isRecord(shell['input'])) return shell
  return { input: {}, ...withoutNulls(shell), id }
}

/** Opens a block, or queues it while another one is open that does not yield. */
function beginBlock(order: BlockOrder, block: Block, start: Omit<Arrival, 'wireIndex'>): void {
  if (order.nextIndex + order.queued.length >= blocksMax) {
    throw invalidResponse('sent too many content blocks')
  }
  const isReplaced = (other: Block) => other.wireIndex === block.wireIndex
  for (const other of order.queued.filter(isReplaced)) other.stopped = true
  if (order.open !== null && (isReplaced(order.open) || yields(order.open))) {
    stopOpen(order, start.out)
    openQueued(order, start.out)
    if (order.open !== null && yields(order.open)) stopOpen(order, start.out)
  }
  if (order.open === null) {
    order.open = block
    emit(order, block, start)
  } else {
    order.queued.push(block)
    buffer(order, block, start)
  }
}

/**
 * Only a call must be complete before another block begins. Text that continues after it yielded
 * does so in a new block.
 */
function yields({ type }: Block): boolean {
  return !isToolUse(type)
}

function handleDelta(order: BlockOrder, arrival: Arrival): void {
  const { payload, wireIndex, out } = arrival
  const delta = payload['delta']
  if (!isRecord(delta)) return
  const deltaType = readString(delta['type'])
  const target = findBlock(order, wireIndex)
  if (target !== null && fits(target.type, deltaType)) {
    addToBlock(order, target, arrival)
    return
  }
  // The start of its block was lost or omitted.
  const shell = shellFor(deltaType)
  if (shell === null) return
  const start = { type: 'content_block_start', index: wireIndex ?? -1, content_block: shell }
  // A call at the same index has not ended: the new block is queued until it has.
  const isInCall = target !== null && isToolUse(target.type)
  const block = createBlock(shell, isInCall ? null : wireIndex)
  beginBlock(order, block, { payload: start, data: '', out })
  addToBlock(order, block, arrival)
}

/** The block of an event; an event without an index belongs to the open block. */
function findBlock(order: BlockOrder, wireIndex: number | null): Block | null {
  if (wireIndex === null || order.open?.wireIndex === null) return order.open
  if (order.open?.wireIndex === wireIndex) return order.open
  return order.queued.findLast((block) => block.wireIndex === wireIndex && !block.stopped) ?? null
}

function fits(blockType: string, deltaType: string): boolean {
  const kind = blockOfDelta[deltaType]
  return kind === undefined || (kind === 'tool' ? isToolUse(blockType) : kind === blockType)
}

/** The start of a block that such a delta can extend; null where a start needs more data. */
function shellFor(deltaType: string): JsonObject | null {
  if (deltaType === 'text_delta') return { type: 'text', text: '' }
  return deltaType === 'thinking_delta' ? { type: 'thinking', thinking: '', signature: '' } : null
}

function handleStop(order: BlockOrder, stop: Arrival): void {
  const block = findBlock(order, stop.wireIndex)
  if (block === null) return
  block.stopped = true
  if (block !== order.open) return
  emit(order, block, stop)
  order.open = null
  openQueued(order, stop.out)
}

function stopOpen(order: BlockOrder, out: RelayFrame[]): void {
  const { open: block } = order
  if (block === null) return
  order.open = null
  emit(order, block, { payload: { type: 'content_block_stop', index: -1 }, data: '', out })
}

/** Opens queued blocks, as long as each has ended or yields to the next one. */
function openQueued(order: BlockOrder, out: RelayFrame[]): void {
  for (let block = order.queued.shift(); block !== undefined; block = order.queued.shift()) {
    order.open = block
    for (const { payload, data } of block.buffered) {
      order.bufferedChars -= data.length
      emit(order, block, { payload, data, out })
    }
    block.buffered = []
    const isFinished = block.stopped || (order.queued.length > 0 && yields(block))
    if (!isFinished) return
    stopOpen(order, out)
  }
}

function buffer(order: BlockOrder, block: Block, frame: Frame): void {
  block.buffered.push({ payload: frame.payload, data: frame.data })
  order.bufferedChars += frame.data.length
  if (order.bufferedChars <= bufferedCharsMax) return
  throw invalidResponse('sent more concurrent content blocks than can be buffered')
}

function emit(order: BlockOrder, block: Block, frame: Frame & { out: RelayFrame[] }): void {
  const { type } = frame.payload
  if (type === 'content_block_start' && isEmptyText(frame.payload)) {
    block.pendingStart = { payload: frame.payload, data: frame.data }
    return
  }
  if (block.pendingStart !== null) {
    if (isEmptyDelta(frame.payload)) return
    const { pendingStart } = block
    block.pendingStart = null
    emitFrame(order, block, { ...pendingStart, out: frame.out })
  }
  emitFrame(order, block, frame)
}

function emitFrame(
  order: BlockOrder,
  block: Block,
  { payload, data, out }: Frame & { out: RelayFrame[] },
) {
  if (block.index === -1) block.index = order.nextIndex++
  const { index } = block
  const isUnchanged = payload['index'] === index
  out.push(frameOf(isUnchanged ? payload : { ...payload, index }, isUnchanged ? data : ''))
}

function isEmptyText(start: JsonObject): boolean {
  const { type, text } = asRecord(start['content_block'])
  return type === 'text' && text === ''
}

function isEmptyDelta({ type, delta }: JsonObject): boolean {
  return type === 'content_block_stop' || asRecord(delta)['text'] === ''
}
