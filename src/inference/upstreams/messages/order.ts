import type { RelayFrame } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { asRecord, isRecord, type JsonObject, withoutNulls } from '#lib/json.ts'
import { legalCallId } from './call-id.ts'
import { frameOf } from './frame.ts'
import { divideBlock } from './whole.ts'
import { blockOfDelta, isToolUse, readText } from './wire.ts'

/**
 * Makes one line of the blocks of a message: one after the other, numbered without gaps, each with
 * its start and its stop. Servers leave stops out, number every block 0, or write several calls at
 * once; clients fail at all of that. What is in order already passes as it came.
 */
export type BlockOrder = {
  open: Block | null
  waiting: Block[]
  nextIndex: number
  heldChars: number
  /** Of the calls so far. */
  readonly callIds: Set<string>
}

type Block = {
  /** The number that the upstream gave, where it gave one. */
  readonly place: number | null
  readonly type: string
  /** The id of a call, which tells a repeated start from another call under the same number. */
  readonly id: string
  /** The number that it goes out under; -1 while it waits. */
  index: number
  stopped: boolean
  /** Its start, until it has something to say: clients refuse texts that are empty. */
  unsaid: Piece | null
  /** What came while another block was open. */
  held: Piece[]
}

type Piece = { payload: JsonObject; data: string }

/** The most that may wait for another block to end, in characters. */
const heldCharsMax = 8_388_608
/** More blocks than any answer has. */
const blocksMax = 4_096

export function createBlockOrder(): BlockOrder {
  return { open: null, waiting: [], nextIndex: 0, heldChars: 0, callIds: new Set() }
}

/** Takes `content_block_start`, `_delta` and `_stop`, in whatever order. */
export function pushInOrder(order: BlockOrder, { payload, data }: Piece, out: RelayFrame[]): void {
  const { type, index } = payload
  const arrival = { payload, data, place: typeof index === 'number' ? index : null, out }
  if (type === 'content_block_start') takeStart(order, arrival)
  else if (type === 'content_block_stop') takeStop(order, arrival)
  else takeDelta(order, arrival)
}

/** Stops every block: the message has no more of them. */
export function closeOrder(order: BlockOrder, out: RelayFrame[]): void {
  stopOpen(order, out)
  while (order.waiting.length > 0) {
    promote(order, out)
    stopOpen(order, out)
  }
}

type Arrival = Piece & { place: number | null; out: RelayFrame[] }

function takeStart(order: BlockOrder, { payload, data, place, out }: Arrival): void {
  const given = payload['content_block']
  if (!isRecord(given)) return
  const { shell, deltas } = emptied(completeShell(given))
  const block = createBlock(shell, place)
  const isTwin = (other: Block) =>
    !other.stopped && other.place === place && other.type === block.type && other.id === block.id
  if ([order.open, ...order.waiting].some((other) => other !== null && isTwin(other))) return
  const told = withUniqueId(order, shell)
  const isSame = told === given
  const whole = isSame ? payload : { ...payload, content_block: told }
  begin(order, block, { payload: whole, data: isSame ? data : '', out })
  for (const delta of deltas) add(order, block, { payload: deltaOf(delta), data: '', out })
}

/** Servers exist that number all calls alike; their results could not be told apart. */
function withUniqueId({ callIds }: BlockOrder, shell: JsonObject): JsonObject {
  if (shell['type'] !== 'tool_use') return shell
  const id = readText(shell['id'])
  const unique = callIds.has(id) ? newId('toolu_') : id
  callIds.add(unique)
  return unique === id ? shell : { ...shell, id: unique }
}

function createBlock(shell: JsonObject, place: number | null): Block {
  return {
    place,
    type: readText(shell['type']),
    id: readText(shell['id']),
    index: -1,
    stopped: false,
    unsaid: null,
    held: [],
  }
}

/** Text and thoughts come in deltas alone; some servers put the first of them into the start. */
function emptied(shell: JsonObject): { shell: JsonObject; deltas: JsonObject[] } {
  const { type } = shell
  const isText = type === 'text' || type === 'thinking'
  const given = [shell['text'], shell['thinking'], shell['signature']].map(readText).join('')
  return isText && given !== '' ? divideBlock(shell) : { shell, deltas: [] }
}

function deltaOf(delta: JsonObject): JsonObject {
  return { type: 'content_block_delta', index: -1, delta }
}

/** Goes on with a block, or has that wait with it. */
function add(order: BlockOrder, block: Block, piece: Piece & { out: RelayFrame[] }): void {
  if (block === order.open) emit(order, block, piece)
  else hold(order, block, piece)
}

/** The fields of an empty block that strict clients read, where a server left them out. */
function completeShell(shell: JsonObject): JsonObject {
  const type = readText(shell['type'])
  if (type === 'text' && typeof shell['text'] !== 'string') return { ...shell, text: '' }
  if (type === 'thinking') {
    const isWhole = typeof shell['thinking'] === 'string' && typeof shell['signature'] === 'string'
    return isWhole ? shell : { thinking: '', signature: '', ...withoutNulls(shell) }
  }
  if (type !== 'tool_use') return shell
  if (readText(shell['name']) === '') {
    throw new AppError('upstream_invalid_answer', 'The upstream called a tool without a name.')
  }
  const given = readText(shell['id'])
  const id = given === '' ? newId('toolu_') : legalCallId(given)
  if (id === given && isRecord(shell['input'])) return shell
  return { input: {}, ...withoutNulls(shell), id }
}

/** Opens a block, or has it wait where another one cannot give way. */
function begin(order: BlockOrder, block: Block, start: Omit<Arrival, 'place'>): void {
  if (order.nextIndex + order.waiting.length >= blocksMax) {
    throw new AppError('upstream_invalid_answer', 'The upstream sent too many content blocks.')
  }
  const isReplaced = (other: Block) => other.place === block.place
  for (const other of order.waiting.filter(isReplaced)) other.stopped = true
  if (order.open !== null && (isReplaced(order.open) || givesWay(order.open))) {
    stopOpen(order, start.out)
    promote(order, start.out)
    if (order.open !== null && givesWay(order.open)) stopOpen(order, start.out)
  }
  if (order.open === null) {
    order.open = block
    emit(order, block, start)
  } else {
    order.waiting.push(block)
    hold(order, block, start)
  }
}

/**
 * Only a call must be whole before something else begins. A text that goes on after all does so in a
 * block of its own.
 */
function givesWay({ type }: Block): boolean {
  return !isToolUse(type)
}

function takeDelta(order: BlockOrder, arrival: Arrival): void {
  const { payload, place, out } = arrival
  const delta = payload['delta']
  if (!isRecord(delta)) return
  const deltaType = readText(delta['type'])
  const meant = find(order, place)
  if (meant !== null && fits(meant.type, deltaType)) {
    add(order, meant, arrival)
    return
  }
  // The start of its block was lost, or left out.
  const shell = shellFor(deltaType)
  if (shell === null) return
  const start = { type: 'content_block_start', index: place ?? -1, content_block: shell }
  // A call under the same number is not over: what is no part of it waits until it is.
  const isInCall = meant !== null && isToolUse(meant.type)
  const block = createBlock(shell, isInCall ? null : place)
  begin(order, block, { payload: start, data: '', out })
  add(order, block, arrival)
}

/** What the event is about; one without a number is about what is open. */
function find(order: BlockOrder, place: number | null): Block | null {
  if (place === null || order.open?.place === null) return order.open
  if (order.open?.place === place) return order.open
  return order.waiting.findLast((block) => block.place === place && !block.stopped) ?? null
}

function fits(blockType: string, deltaType: string): boolean {
  const kind = blockOfDelta[deltaType]
  return kind === undefined || (kind === 'tool' ? isToolUse(blockType) : kind === blockType)
}

/** The start of a block that such a delta can go on with; null where that would need more. */
function shellFor(deltaType: string): JsonObject | null {
  if (deltaType === 'text_delta') return { type: 'text', text: '' }
  return deltaType === 'thinking_delta' ? { type: 'thinking', thinking: '', signature: '' } : null
}

function takeStop(order: BlockOrder, stop: Arrival): void {
  const block = find(order, stop.place)
  if (block === null) return
  block.stopped = true
  if (block !== order.open) return
  emit(order, block, stop)
  order.open = null
  promote(order, stop.out)
}

function stopOpen(order: BlockOrder, out: RelayFrame[]): void {
  const { open: block } = order
  if (block === null) return
  order.open = null
  emit(order, block, { payload: { type: 'content_block_stop', index: -1 }, data: '', out })
}

/** Opens who waits, as far as they are whole or give way to the next one. */
function promote(order: BlockOrder, out: RelayFrame[]): void {
  for (let block = order.waiting.shift(); block !== undefined; block = order.waiting.shift()) {
    order.open = block
    for (const { payload, data } of block.held) {
      order.heldChars -= data.length
      emit(order, block, { payload, data, out })
    }
    block.held = []
    const isOver = block.stopped || (order.waiting.length > 0 && givesWay(block))
    if (!isOver) return
    stopOpen(order, out)
  }
}

function hold(order: BlockOrder, block: Block, held: Piece): void {
  block.held.push({ payload: held.payload, data: held.data })
  order.heldChars += held.data.length
  if (order.heldChars <= heldCharsMax) return
  throw new AppError(
    'upstream_invalid_answer',
    'The upstream sent more content blocks at once than can be put in order.',
  )
}

function emit(order: BlockOrder, block: Block, piece: Piece & { out: RelayFrame[] }): void {
  const { type } = piece.payload
  if (type === 'content_block_start' && isEmptyText(piece.payload)) {
    block.unsaid = { payload: piece.payload, data: piece.data }
    return
  }
  if (block.unsaid !== null) {
    if (saysNothing(piece.payload)) return
    const { unsaid } = block
    block.unsaid = null
    put(order, block, { ...unsaid, out: piece.out })
  }
  put(order, block, piece)
}

function put(
  order: BlockOrder,
  block: Block,
  { payload, data, out }: Piece & { out: RelayFrame[] },
) {
  if (block.index === -1) block.index = order.nextIndex++
  const { index } = block
  const isPlaced = payload['index'] === index
  out.push(frameOf(isPlaced ? payload : { ...payload, index }, isPlaced ? data : ''))
}

function isEmptyText(start: JsonObject): boolean {
  const { type, text } = asRecord(start['content_block'])
  return type === 'text' && text === ''
}

function saysNothing({ type, delta }: JsonObject): boolean {
  return type === 'content_block_stop' || asRecord(delta)['text'] === ''
}
