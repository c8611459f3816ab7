import { invalidResponse } from '#inference/decode-errors.ts'
import type { RelayFrame } from '#inference/events.ts'
import { readString } from '#inference/upstream-fields.ts'
import { newId } from '#lib/id.ts'
import { asRecord, isRecord, type JsonObject, withoutNulls } from '#lib/json.ts'
import { type Frame, frameOf } from './relay.ts'
import { splitBlock } from './whole-message.ts'
import { blockOfDelta, isToolUse, legalCallId } from './wire.ts'

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

/**
 * Serialises the blocks of a message: one after the other, numbered without gaps, each with its start
 * and its stop. Servers omit stops, number every block 0, or interleave calls, which clients cannot
 * handle. Frames that are in order are forwarded unchanged.
 */
export class BlockOrder {
  #open: Block | null = null
  #queued: Block[] = []
  #nextIndex = 0
  #bufferedChars = 0
  /** The ids of the calls so far; null before the first one. */
  #callIds: Set<string> | null = null
  /** Receives the ordered frames; set for each frame. */
  #out: RelayFrame[] = []

  /** Handles `content_block_start`, `_delta` and `_stop`, in any order. */
  push(frame: Frame, out: RelayFrame[]) {
    this.#out = out
    const { type, index } = frame.payload
    const wireIndex = typeof index === 'number' ? index : null
    if (type === 'content_block_start') this.#handleStart(frame, wireIndex)
    else if (type === 'content_block_stop') this.#handleStop(frame, wireIndex)
    else this.#handleDelta(frame, wireIndex)
  }

  /** Stops every block at the end of the message. */
  stopAll(out: RelayFrame[]) {
    this.#out = out
    this.#stopOpen()
    while (this.#queued.length > 0) {
      this.#openQueued()
      this.#stopOpen()
    }
  }

  #handleStart({ payload, data }: Frame, wireIndex: number | null) {
    const received = payload['content_block']
    if (!isRecord(received)) return
    const { shell, deltas } = splitContent(fillShell(received))
    const block = createBlock(shell, wireIndex)
    if (this.#isRepeated(block)) return
    const unique = this.#withUniqueId(shell)
    const start =
      unique === received
        ? { payload, data }
        : { payload: { ...payload, content_block: unique }, data: '' }
    this.#begin(block, start)
    for (const delta of deltas) {
      this.#add(block, { payload: { type: 'content_block_delta', index: -1, delta }, data: '' })
    }
  }

  /** Whether a block that has not ended had the same start. */
  #isRepeated({ wireIndex, type, id }: Block): boolean {
    const open = this.#open
    if (open === null) return false
    return [open, ...this.#queued].some(
      (other) =>
        !other.stopped && other.wireIndex === wireIndex && other.type === type && other.id === id,
    )
  }

  /** Some servers send the same id for every call, which would make their results ambiguous. */
  #withUniqueId(shell: JsonObject): JsonObject {
    if (shell['type'] !== 'tool_use') return shell
    const id = readString(shell['id'])
    this.#callIds ??= new Set()
    const unique = this.#callIds.has(id) ? newId('toolu_') : id
    this.#callIds.add(unique)
    return unique === id ? shell : { ...shell, id: unique }
  }

  #handleDelta(frame: Frame, wireIndex: number | null) {
    const { delta } = frame.payload
    if (!isRecord(delta)) return
    const deltaType = readString(delta['type'])
    const target = this.#find(wireIndex)
    if (target !== null && fits(target.type, deltaType)) {
      this.#add(target, frame)
      return
    }
    // The start of its block was lost or omitted.
    const shell = shellFor(deltaType)
    if (shell === null) return
    const start = { type: 'content_block_start', index: wireIndex ?? -1, content_block: shell }
    // A call at the same index has not ended: the new block is queued until it has.
    const isInCall = target !== null && isToolUse(target.type)
    const block = createBlock(shell, isInCall ? null : wireIndex)
    this.#begin(block, { payload: start, data: '' })
    this.#add(block, frame)
  }

  #handleStop(frame: Frame, wireIndex: number | null) {
    const block = this.#find(wireIndex)
    if (block === null) return
    block.stopped = true
    if (block !== this.#open) return
    this.#emit(block, frame)
    this.#open = null
    this.#openQueued()
  }

  /** The block of an event; an event without an index belongs to the open block. */
  #find(wireIndex: number | null): Block | null {
    const open = this.#open
    if (wireIndex === null || open?.wireIndex === null || open?.wireIndex === wireIndex) return open
    return this.#queued.findLast((block) => block.wireIndex === wireIndex && !block.stopped) ?? null
  }

  /** Opens a block, or queues it while another one is open that does not yield. */
  #begin(block: Block, start: Frame) {
    if (this.#nextIndex + this.#queued.length >= blocksMax) {
      throw invalidResponse('sent too many content blocks')
    }
    const { wireIndex } = block
    for (const other of this.#queued) if (other.wireIndex === wireIndex) other.stopped = true
    if (this.#open !== null && (this.#open.wireIndex === wireIndex || yields(this.#open))) {
      this.#stopOpen()
      this.#openQueued()
      if (this.#open !== null && yields(this.#open)) this.#stopOpen()
    }
    if (this.#open === null) this.#open = block
    else this.#queued.push(block)
    this.#add(block, start)
  }

  /** Continues a block, or buffers the frame while the block is queued. */
  #add(block: Block, frame: Frame) {
    if (block === this.#open) {
      this.#emit(block, frame)
      return
    }
    block.buffered.push(frame)
    this.#bufferedChars += frame.data.length
    if (this.#bufferedChars <= bufferedCharsMax) return
    throw invalidResponse('sent more concurrent content blocks than can be buffered')
  }

  #stopOpen() {
    const block = this.#open
    if (block === null) return
    this.#open = null
    this.#emit(block, { payload: { type: 'content_block_stop', index: -1 }, data: '' })
  }

  /** Opens queued blocks, as long as each has ended or yields to the next one. */
  #openQueued() {
    for (let block = this.#queued.shift(); block !== undefined; block = this.#queued.shift()) {
      this.#open = block
      for (const frame of block.buffered) {
        this.#bufferedChars -= frame.data.length
        this.#emit(block, frame)
      }
      block.buffered = []
      const isFinished = block.stopped || (this.#queued.length > 0 && yields(block))
      if (!isFinished) return
      this.#stopOpen()
    }
  }

  #emit(block: Block, frame: Frame) {
    const { payload } = frame
    if (payload['type'] === 'content_block_start' && isEmptyText(payload)) {
      block.pendingStart = frame
      return
    }
    if (block.pendingStart !== null) {
      if (isEmptyDelta(payload)) return
      const { pendingStart } = block
      block.pendingStart = null
      this.#emitFrame(block, pendingStart)
    }
    this.#emitFrame(block, frame)
  }

  #emitFrame(block: Block, { payload, data }: Frame) {
    if (block.index === -1) block.index = this.#nextIndex++
    const { index } = block
    const isUnchanged = payload['index'] === index
    this.#out.push(frameOf(isUnchanged ? payload : { ...payload, index }, isUnchanged ? data : ''))
  }
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

const contentFields = ['text', 'thinking', 'signature']

/** Text and thinking belong in deltas; some servers put the first of it into the start. */
function splitContent(shell: JsonObject): { shell: JsonObject; deltas: JsonObject[] } {
  const { type } = shell
  const isText = type === 'text' || type === 'thinking'
  const hasContent = isText && contentFields.some((field) => readString(shell[field]) !== '')
  return hasContent ? splitBlock(shell) : { shell, deltas: [] }
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

/**
 * Only a call must be complete before another block begins. Text that continues after it yielded
 * does so in a new block.
 */
function yields({ type }: Block): boolean {
  return !isToolUse(type)
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

function isEmptyText(start: JsonObject): boolean {
  const { type, text } = asRecord(start['content_block'])
  return type === 'text' && text === ''
}

function isEmptyDelta({ type, delta }: JsonObject): boolean {
  return type === 'content_block_stop' || asRecord(delta)['text'] === ''
}
