import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { GenerationEvent, ToolCallHead } from './events.ts'
import type { GenerationRequest } from './request.ts'

/** A streamed piece of a tool call; empty strings stand for omitted fields. */
export type ToolCallPiece = {
  /** The upstream's index of the call; by default its position in the list. */
  index: number
  indexGiven: boolean
  id: string
  name: string
  /** The next piece of the arguments. */
  text: string
}

/**
 * Turns pieces of tool calls into events, one call after the other: the first call streams, later calls
 * are held until it is complete.
 */
export type ToolCalls = {
  push(piece: ToolCallPiece, out: GenerationEvent[]): void
  /** Ends every call. `cut`: the output was truncated, so an unfinished call is incomplete. */
  close(out: GenerationEvent[], cut: boolean): void
  /** Started calls. */
  count(): number
}

export type ToolCallsOptions = {
  /** The original name of the call, by the name that the upstream uses. */
  head(upstreamName: string): Omit<ToolCallHead, 'callId'>
  /** Closes the open block and returns the number of the next one. */
  openBlock(out: GenerationEvent[]): number
  /** The ids of calls in earlier turns. */
  takenCallIds: ReadonlySet<string>
  /** The most held argument text. */
  heldCharsMax: number
}

/** The ids of calls in the history of a request. */
export function callIdsOf({ items }: Pick<GenerationRequest, 'items'>): Set<string> {
  return new Set(items.flatMap((item) => (item.type === 'tool-call' ? [item.callId] : [])))
}

/** No model makes more calls in one response on purpose. */
const callsMax = 1_024
/** The longest call id that the Responses format allows. */
const callIdCharsMax = 64

type Call = {
  id: string
  name: string
  /** Received arguments that were not emitted yet. */
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
  if (piece.text !== '') addText(state, call, piece.text)
  advance(state, out)
}

/** The call that a piece continues; null if it starts a new one. */
function findCall(state: State, piece: ToolCallPiece): Call | null {
  const known = piece.indexGiven || piece.id === '' ? undefined : state.byId.get(piece.id)
  const call = known ?? state.byIndex.get(piece.index)
  if (call === undefined) return null
  // Some servers use index 0 for every call, so a different id is a different call.
  if (piece.id !== '' && call.id !== '' && piece.id !== call.id) return null
  // Without ids, a name starts a call after the previous one is complete. Some servers repeat the
  // name in every piece, including an empty last one.
  const sameId = piece.id !== '' && piece.id === call.id
  const mayStart = piece.name !== '' && !sameId && (call.ended || isComplete(call.json))
  return mayStart && (piece.text !== '' || piece.name !== call.name) ? null : call
}

function addCall(state: State, piece: ToolCallPiece): Call {
  state.callCount++
  if (state.callCount > callsMax) throw invalid('too many tool calls')
  const call: Call = {
    id: piece.id,
    name: piece.name,
    held: '',
    isEmpty: true,
    json: { depth: 0, inString: false, escaped: false, started: false },
    open: null,
    ended: false,
  }
  state.byIndex.set(piece.index, call)
  if (piece.id !== '') state.byId.set(piece.id, call)
  state.queue.push(call)
  return call
}

function addText(state: State, call: Call, text: string): void {
  if (call.ended) {
    if (text.trim() === '') return
    throw invalid('arguments of a tool call that had ended')
  }
  call.isEmpty = false
  call.held += text
  state.heldChars += text.length
  readJson(call.json, text)
}

/** Emits everything that can be emitted now. */
function advance(state: State, out: GenerationEvent[]): void {
  for (let call = state.queue[0]; call !== undefined; call = state.queue[0]) {
    if (call.open === null && call.name !== '') open(state, call, out)
    if (call.open?.head.form === 'function') emitHeld(state, call, out)
    if (state.queue.length === 1 || call.open === null || !isComplete(call.json)) break
    end(state, call, { out, complete: true })
  }
  if (state.heldChars > state.options.heldCharsMax) {
    throw invalid('too many tool-call arguments')
  }
}

function open(state: State, call: Call, out: GenerationEvent[]): void {
  const head = { callId: assignCallId(state, call.id), ...state.options.head(call.name) }
  call.open = { block: state.options.openBlock(out), head }
  state.openedCount++
  out.push({ type: 'tool-call-start', block: call.open.block, call: head })
}

/** The upstream's id if it is valid and unique, so that the model sees it again; otherwise a new one. */
function assignCallId(state: State, upstreamId: string): string {
  const usable = upstreamId.length <= callIdCharsMax && !state.usedCallIds.has(upstreamId)
  const callId = usable && upstreamId !== '' ? upstreamId : newId('call_')
  state.usedCallIds.add(callId)
  return callId
}

function emitHeld(state: State, call: Call, out: GenerationEvent[]): void {
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
    // Empty arguments are not valid JSON.
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
    if (call.open?.head.form === 'function') emitHeld(state, call, out)
    const complete = !cut || isComplete(call.json)
    end(state, call, { out, complete })
    // An incomplete block must be the last one, so later unfinished calls are dropped.
    if (!complete) state.queue.length = 0
  }
}

/** Chat upstreams return free-form input as the only field of a JSON object. */
function unwrapInput(text: string): string {
  const parsed = parseJson(text)
  return isRecord(parsed) && typeof parsed['input'] === 'string' ? parsed['input'] : text
}

/** The progress of a JSON object or array that arrives in pieces. */
type JsonProgress = { depth: number; inString: boolean; escaped: boolean; started: boolean }

function isComplete(json: JsonProgress): boolean {
  return json.started && json.depth <= 0
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
      json.started = true
      json.depth++
    } else if (char === '}' || char === ']') json.depth--
  }
}

function invalid(found: string): AppError {
  return new AppError('upstream_invalid_answer', `The upstream sent ${found}.`)
}
