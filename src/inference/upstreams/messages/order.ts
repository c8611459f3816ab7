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
  /** `content_block_start`, `_delta` and `_stop`, in whatever order. */
  push(payload: JsonObject, data: string, out: RelayFrame[]): void
  /** Stops every block: the message has no more of them. */
  close(out: RelayFrame[]): void
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

type State = {
  open: Block | null
  waiting: Block[]
  nextIndex: number
  heldChars: number
  /** Of the calls so far. */
  callIds: Set<string>
}

/** The most that may wait for another block to end, in characters. */
const heldCharsMax = 8_388_608
/** More blocks than any answer has. */
const blocksMax = 4_096

export function createBlockOrder(): BlockOrder {
  const state: State = { open: null, waiting: [], nextIndex: 0, heldChars: 0, callIds: new Set() }
  return {
    push(payload, data, out) {
      const place = typeof payload['index'] === 'number' ? payload['index'] : null
      if (payload['type'] === 'content_block_start') takeStart(state, { payload, data, place, out })
      else if (payload['type'] === 'content_block_stop')
        takeStop(state, place, { payload, data, out })
      else takeDelta(state, { payload, data, place, out })
    },
    close(out) {
      stopOpen(state, out)
      while (state.waiting.length > 0) {
        promote(state, out)
        stopOpen(state, out)
      }
    },
  }
}

type Arrival = Piece & { place: number | null; out: RelayFrame[] }

function takeStart(state: State, { payload, data, place, out }: Arrival): void {
  const given = payload['content_block']
  if (!isRecord(given)) return
  const { shell, deltas } = emptied(completeShell(given))
  const block = createBlock(shell, place)
  const isTwin = (other: Block) =>
    !other.stopped && other.place === place && other.type === block.type && other.id === block.id
  if ([state.open, ...state.waiting].some((other) => other !== null && isTwin(other))) return
  const told = withUniqueId(state, shell)
  const isSame = told === given
  const whole = isSame ? payload : { ...payload, content_block: told }
  begin(state, block, { payload: whole, data: isSame ? data : '', out })
  for (const delta of deltas) add(state, block, { payload: deltaOf(delta), data: '', out })
}

/** Servers exist that number all calls alike; their results could not be told apart. */
function withUniqueId({ callIds }: State, shell: JsonObject): JsonObject {
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
function add(state: State, block: Block, piece: Piece & { out: RelayFrame[] }): void {
  if (block === state.open) emit(state, block, piece)
  else hold(state, block, piece)
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
function begin(state: State, block: Block, start: Omit<Arrival, 'place'>): void {
  if (state.nextIndex + state.waiting.length >= blocksMax) {
    throw new AppError('upstream_invalid_answer', 'The upstream sent too many content blocks.')
  }
  const isReplaced = (other: Block) => other.place === block.place
  for (const other of state.waiting.filter(isReplaced)) other.stopped = true
  if (state.open !== null && (isReplaced(state.open) || givesWay(state.open))) {
    stopOpen(state, start.out)
    promote(state, start.out)
    if (state.open !== null && givesWay(state.open)) stopOpen(state, start.out)
  }
  if (state.open === null) {
    state.open = block
    emit(state, block, start)
  } else {
    state.waiting.push(block)
    hold(state, block, start)
  }
}

/**
 * Only a call must be whole before something else begins. A text that goes on after all does so in a
 * block of its own.
 */
function givesWay({ type }: Block): boolean {
  return !isToolUse(type)
}

function takeDelta(state: State, { payload, data, place, out }: Arrival): void {
  const delta = payload['delta']
  if (!isRecord(delta)) return
  const deltaType = readText(delta['type'])
  const meant = find(state, place)
  if (meant !== null && fits(meant.type, deltaType)) {
    add(state, meant, { payload, data, out })
    return
  }
  // The start of its block was lost, or left out.
  const shell = shellFor(deltaType)
  if (shell === null) return
  const start = { type: 'content_block_start', index: place ?? -1, content_block: shell }
  // A call under the same number is not over: what is no part of it waits until it is.
  const isInCall = meant !== null && isToolUse(meant.type)
  const block = createBlock(shell, isInCall ? null : place)
  begin(state, block, { payload: start, data: '', out })
  add(state, block, { payload, data, out })
}

/** What the event is about; one without a number is about what is open. */
function find(state: State, place: number | null): Block | null {
  if (place === null || state.open?.place === null) return state.open
  if (state.open?.place === place) return state.open
  return state.waiting.findLast((block) => block.place === place && !block.stopped) ?? null
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

function takeStop(state: State, place: number | null, stop: Piece & { out: RelayFrame[] }): void {
  const block = find(state, place)
  if (block === null) return
  block.stopped = true
  if (block !== state.open) return
  emit(state, block, stop)
  state.open = null
  promote(state, stop.out)
}

function stopOpen(state: State, out: RelayFrame[]): void {
  const { open: block } = state
  if (block === null) return
  state.open = null
  emit(state, block, { payload: { type: 'content_block_stop', index: -1 }, data: '', out })
}

/** Opens who waits, as far as they are whole or give way to the next one. */
function promote(state: State, out: RelayFrame[]): void {
  for (let block = state.waiting.shift(); block !== undefined; block = state.waiting.shift()) {
    state.open = block
    for (const { payload, data } of block.held) {
      state.heldChars -= data.length
      emit(state, block, { payload, data, out })
    }
    block.held = []
    const isOver = block.stopped || (state.waiting.length > 0 && givesWay(block))
    if (!isOver) return
    stopOpen(state, out)
  }
}

function hold(state: State, block: Block, held: Piece): void {
  block.held.push({ payload: held.payload, data: held.data })
  state.heldChars += held.data.length
  if (state.heldChars <= heldCharsMax) return
  throw new AppError(
    'upstream_invalid_answer',
    'The upstream sent more content blocks at once than can be put in order.',
  )
}

function emit(state: State, block: Block, piece: Piece & { out: RelayFrame[] }): void {
  const { type } = piece.payload
  if (type === 'content_block_start' && isEmptyText(piece.payload)) {
    block.unsaid = { payload: piece.payload, data: piece.data }
    return
  }
  if (block.unsaid !== null) {
    if (saysNothing(piece.payload)) return
    const { unsaid } = block
    block.unsaid = null
    put(state, block, { ...unsaid, out: piece.out })
  }
  put(state, block, piece)
}

function put(state: State, block: Block, { payload, data, out }: Piece & { out: RelayFrame[] }) {
  if (block.index === -1) block.index = state.nextIndex++
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
