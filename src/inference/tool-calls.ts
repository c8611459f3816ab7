import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { GenerationEvent, ToolCallHead } from './events.ts'
import type { GenerationRequest } from './request.ts'

/** One piece of a tool call as an upstream streams it; empty strings stand for what it omits. */
export type ToolCallPiece = {
  /** The upstream's number of the call; where it gives none, the place in its list. */
  index: number
  indexGiven: boolean
  id: string
  name: string
  /** The next piece of the arguments. */
  text: string
}

/**
 * Turns pieces of tool calls into events, one call after the other: the first call streams, later
 * ones are held until it is complete.
 */
export type ToolCalls = {
  push(piece: ToolCallPiece, out: GenerationEvent[]): void
  /** Ends every call. `cut`: the model was stopped, so a half-written call is incomplete. */
  close(out: GenerationEvent[], cut: boolean): void
  /** Calls that were given out so far. */
  count(): number
}

export type ToolCallsOptions = {
  /** The call as its caller knows it, by the name that the upstream uses. */
  head(upstreamName: string): Omit<ToolCallHead, 'callId'>
  /** Closes the block that is open, and gives the number of the one that opens now. */
  openBlock(out: GenerationEvent[]): number
  /** Ids that calls of earlier turns bear. */
  takenCallIds: ReadonlySet<string>
  /** The most argument text that is held, in characters. */
  heldCharsMax: number
}

/** The ids that calls in the history of a request bear. */
export function callIdsOf({ items }: Pick<GenerationRequest, 'items'>): Set<string> {
  return new Set(items.flatMap((item) => (item.type === 'tool-call' ? [item.callId] : [])))
}

/** More calls in one answer than any model makes on purpose. */
const callsMax = 1_024
/** The longest call id that the Responses format allows. */
const callIdCharsMax = 64

type Call = {
  id: string
  name: string
  /** What came and was not given out yet. */
  held: string
  isEmpty: boolean
  json: JsonProgress
  open: { block: number; head: ToolCallHead } | null
  ended: boolean
}

type State = {
  options: ToolCallsOptions
  /** The latest call under each index, and each call under its upstream id. */
  byIndex: Map<number, Call>
  byId: Map<string, Call>
  /** Calls that have not ended, in order; the first one streams. */
  queue: Call[]
  usedCallIds: Set<string>
  callCount: number
  openedCount: number
  heldChars: number
}

export function createToolCalls(options: ToolCallsOptions): ToolCalls {
  const state: State = {
    options,
    byIndex: new Map(),
    byId: new Map(),
    queue: [],
    usedCallIds: new Set(options.takenCallIds),
    callCount: 0,
    openedCount: 0,
    heldChars: 0,
  }
  return {
    push: (piece, out) => push(state, piece, out),
    close: (out, cut) => close(state, out, cut),
    count: () => state.openedCount,
  }
}

function push(state: State, piece: ToolCallPiece, out: GenerationEvent[]): void {
  const call = findCall(state, piece) ?? addCall(state, piece)
  if (call.id === '') call.id = piece.id
  if (call.name === '') call.name = piece.name
  if (piece.text !== '') takeText(state, call, piece.text)
  advance(state, out)
}

/** The call that a piece continues, or null where it begins another one. */
function findCall(state: State, piece: ToolCallPiece): Call | null {
  const known = piece.indexGiven || piece.id === '' ? undefined : state.byId.get(piece.id)
  const call = known ?? state.byIndex.get(piece.index)
  if (call === undefined) return null
  // Some servers number every call 0, so another id is another call.
  if (piece.id !== '' && call.id !== '' && piece.id !== call.id) return null
  // Without ids a name begins a call once the last one is written out; some servers repeat the
  // name in every piece, also in an empty one at the end.
  const sameId = piece.id !== '' && piece.id === call.id
  const mayBegin = piece.name !== '' && !sameId && (call.ended || isComplete(call.json))
  return mayBegin && (piece.text !== '' || piece.name !== call.name) ? null : call
}

function addCall(state: State, piece: ToolCallPiece): Call {
  state.callCount++
  if (state.callCount > callsMax) throw invalid('more tool calls than can be meant')
  const call: Call = {
    id: piece.id,
    name: piece.name,
    held: '',
    isEmpty: true,
    json: { depth: 0, inString: false, escaped: false, begun: false },
    open: null,
    ended: false,
  }
  state.byIndex.set(piece.index, call)
  if (piece.id !== '') state.byId.set(piece.id, call)
  state.queue.push(call)
  return call
}

function takeText(state: State, call: Call, text: string): void {
  if (call.ended) {
    if (text.trim() === '') return
    throw invalid('arguments of a tool call that had ended')
  }
  call.isEmpty = false
  call.held += text
  state.heldChars += text.length
  readJson(call.json, text)
}

/** Gives out what can be given out now. */
function advance(state: State, out: GenerationEvent[]): void {
  for (let call = state.queue[0]; call !== undefined; call = state.queue[0]) {
    if (call.open === null && call.name !== '') open(state, call, out)
    if (call.open?.head.form === 'function') giveHeld(state, call, out)
    if (state.queue.length === 1 || call.open === null || !isComplete(call.json)) break
    end(state, call, { out, complete: true })
  }
  if (state.heldChars > state.options.heldCharsMax) {
    throw invalid('more tool-call arguments than can be held')
  }
}

function open(state: State, call: Call, out: GenerationEvent[]): void {
  const head = { callId: takeCallId(state, call.id), ...state.options.head(call.name) }
  call.open = { block: state.options.openBlock(out), head }
  state.openedCount++
  out.push({ type: 'tool-call-start', block: call.open.block, call: head })
}

/** The upstream's id where it can serve, so that the model meets it again; otherwise our own. */
function takeCallId(state: State, upstreamId: string): string {
  const usable = upstreamId.length <= callIdCharsMax && !state.usedCallIds.has(upstreamId)
  const callId = usable && upstreamId !== '' ? upstreamId : newId('call_')
  state.usedCallIds.add(callId)
  return callId
}

function giveHeld(state: State, call: Call, out: GenerationEvent[]): void {
  if (call.open === null || call.held === '') return
  out.push({ type: 'tool-call-delta', block: call.open.block, text: call.held })
  state.heldChars -= call.held.length
  call.held = ''
}

function end(state: State, call: Call, how: { out: GenerationEvent[]; complete: boolean }): void {
  if (call.open === null) return
  const { block, head } = call.open
  if (head.form === 'custom') {
    const text = how.complete ? unwrapInput(call.held) : ''
    if (text !== '') how.out.push({ type: 'tool-call-delta', block, text })
    state.heldChars -= call.held.length
    call.held = ''
  } else if (call.isEmpty && how.complete) {
    // No arguments at all would break every JSON parser behind us.
    how.out.push({ type: 'tool-call-delta', block, text: '{}' })
  }
  how.out.push({ type: 'tool-call-end', block, complete: how.complete })
  call.ended = true
  state.queue.shift()
}

function close(state: State, out: GenerationEvent[], cut: boolean): void {
  for (let call = state.queue[0]; call !== undefined; call = state.queue[0]) {
    if (call.name === '') {
      if (!cut && !call.isEmpty) throw invalid('a tool call without a name')
      call.ended = true
      state.queue.shift()
      continue
    }
    if (call.open === null) open(state, call, out)
    if (call.open?.head.form === 'function') giveHeld(state, call, out)
    const complete = !cut || isComplete(call.json)
    end(state, call, { out, complete })
    // An incomplete block is the last one, so half-written calls behind it are dropped.
    if (!complete) state.queue.length = 0
  }
}

/** Freeform input travels to a chat upstream as the one field of a JSON object. */
function unwrapInput(text: string): string {
  const parsed = parseJson(text)
  return isRecord(parsed) && typeof parsed['input'] === 'string' ? parsed['input'] : text
}

/** How far a JSON object or array, read in pieces, has been written out. */
type JsonProgress = { depth: number; inString: boolean; escaped: boolean; begun: boolean }

function isComplete(json: JsonProgress): boolean {
  return json.begun && json.depth <= 0
}

function readJson(json: JsonProgress, text: string): void {
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (json.escaped) json.escaped = false
    else if (json.inString) {
      if (char === '\\') json.escaped = true
      else if (char === '"') json.inString = false
    } else if (char === '"') json.inString = true
    else if (char === '{' || char === '[') {
      json.begun = true
      json.depth++
    } else if (char === '}' || char === ']') json.depth--
  }
}

function invalid(what: string): AppError {
  return new AppError('upstream_invalid_answer', `The upstream sent ${what}.`)
}
