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
  /** A vendor's additions to the call. */
  extra?: unknown
}

export type ToolCallsOptions = {
  /** The original name of the call, by the name that the upstream uses. */
  head(upstreamName: string): Omit<ToolCallHead, 'callId'>
  /** Closes the open block and returns the number of the next one. */
  openBlock(out: GenerationEvent[]): number
  /** Receives the vendor's additions to a call, before its block if they precede it. */
  addExtra?(callId: string, extra: unknown): void
  /** The ids of calls in earlier turns. */
  takenCallIds: ReadonlySet<string>
  /** The most held argument text. */
  heldCharsMax: number
}

/** The ids of calls in the history of a request. */
export function callIdsOf({ items }: Pick<GenerationRequest, 'items'>): ReadonlySet<string> {
  if (!items.some(({ type }) => type === 'tool-call')) return noCallIds
  return new Set(items.flatMap((item) => (item.type === 'tool-call' ? [item.callId] : [])))
}

const noCallIds: ReadonlySet<string> = new Set()

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
  extra: unknown
  open: { block: number; head: ToolCallHead } | null
  ended: boolean
}

/**
 * Turns pieces of tool calls into events, one call after the other: the first call streams, later calls
 * are held until it is complete.
 */
export class ToolCalls {
  readonly #options: ToolCallsOptions
  /** The latest call under each index, and each call under its upstream id. */
  readonly #byIndex = new Map<number, Call>()
  readonly #byId = new Map<string, Call>()
  /** Calls that have not ended, in order; the first one streams. */
  readonly #queue: Call[] = []
  readonly #usedCallIds: Set<string>
  #callCount = 0
  #heldChars = 0
  /** Started calls. */
  count = 0

  constructor(options: ToolCallsOptions) {
    this.#options = options
    this.#usedCallIds = new Set(options.takenCallIds)
  }

  /** Whether a call has begun arguments that are not complete. */
  get isCut(): boolean {
    return this.#queue.some(({ isEmpty, json }) => !isEmpty && !isComplete(json))
  }

  push(piece: ToolCallPiece, out: GenerationEvent[]) {
    const call = this.#find(piece) ?? this.#add(piece)
    if (call.id === '') call.id = piece.id
    if (call.name === '') call.name = piece.name
    if (piece.text !== '') this.#addText(call, piece.text)
    if (piece.extra) {
      if (call.open === null) call.extra = piece.extra
      else this.#options.addExtra?.(call.open.head.callId, piece.extra)
    }
    this.#advance(out)
  }

  /** Ends every call. `cut`: the output was truncated, so an unfinished call is incomplete. */
  close(out: GenerationEvent[], cut: boolean) {
    for (let call = this.#queue[0]; call !== undefined; call = this.#queue[0]) {
      if (call.name === '') {
        if (!cut && !call.isEmpty) throw invalid('a tool call without a name')
        call.ended = true
        this.#queue.shift()
        continue
      }
      this.#open(call, out)
      const complete = !cut || isComplete(call.json)
      this.#end(call, out, complete)
      // An incomplete block must be the last one, so later unfinished calls are dropped.
      if (!complete) this.#queue.length = 0
    }
  }

  /** The call that a piece continues; null if it starts a new one. */
  #find(piece: ToolCallPiece): Call | null {
    const known = piece.indexGiven || piece.id === '' ? undefined : this.#byId.get(piece.id)
    const call = known ?? this.#byIndex.get(piece.index)
    if (call === undefined) return null
    // Some servers use index 0 for every call, so a different id is a different call.
    if (piece.id !== '' && call.id !== '' && piece.id !== call.id) return null
    // Without ids, a name starts a call after the previous one is complete. Some servers repeat the
    // name in every piece, including an empty last one.
    const sameId = piece.id !== '' && piece.id === call.id
    const mayStart = piece.name !== '' && !sameId && (call.ended || isComplete(call.json))
    return mayStart && (piece.text !== '' || piece.name !== call.name) ? null : call
  }

  #add({ index, id, name }: ToolCallPiece): Call {
    this.#callCount++
    if (this.#callCount > callsMax) throw invalid('too many tool calls')
    const json = { depth: 0, inString: false, escaped: false, started: false }
    const call: Call = {
      id,
      name,
      held: '',
      isEmpty: true,
      json,
      extra: null,
      open: null,
      ended: false,
    }
    this.#byIndex.set(index, call)
    if (id !== '') this.#byId.set(id, call)
    this.#queue.push(call)
    return call
  }

  #addText(call: Call, text: string) {
    if (call.ended) {
      if (text.trim() === '') return
      throw invalid('arguments of a tool call that had ended')
    }
    call.isEmpty = false
    call.held += text
    this.#heldChars += text.length
    readJson(call.json, text)
  }

  /** Emits everything that can be emitted now. */
  #advance(out: GenerationEvent[]) {
    for (let call = this.#queue[0]; call !== undefined; call = this.#queue[0]) {
      if (call.name !== '') this.#open(call, out)
      if (this.#queue.length === 1 || call.open === null || !isComplete(call.json)) break
      this.#end(call, out, true)
    }
    if (this.#heldChars > this.#options.heldCharsMax) throw invalid('too many tool-call arguments')
  }

  /** Starts a call if necessary, and emits held arguments of a function. */
  #open(call: Call, out: GenerationEvent[]) {
    if (call.open === null) {
      const head = { callId: this.#assignCallId(call.id), ...this.#options.head(call.name) }
      if (call.extra) this.#options.addExtra?.(head.callId, call.extra)
      call.open = { block: this.#options.openBlock(out), head }
      this.count++
      out.push({ type: 'tool-call-start', block: call.open.block, call: head })
    }
    if (call.open.head.form === 'custom' || call.held === '') return
    out.push({ type: 'tool-call-delta', block: call.open.block, text: this.#takeHeld(call) })
  }

  /** The upstream's id if it is valid and unique, so that the model sees it again; otherwise a new one. */
  #assignCallId(upstreamId: string): string {
    const usable = upstreamId.length <= callIdCharsMax && !this.#usedCallIds.has(upstreamId)
    const callId = usable && upstreamId !== '' ? upstreamId : newId('call_')
    this.#usedCallIds.add(callId)
    return callId
  }

  #takeHeld(call: Call): string {
    const { held } = call
    this.#heldChars -= held.length
    call.held = ''
    return held
  }

  #end(call: Call, out: GenerationEvent[], complete: boolean) {
    if (call.open === null) return
    const { block, head } = call.open
    // Empty arguments are not valid JSON.
    const missing = call.isEmpty ? '{}' : ''
    const rest = head.form === 'custom' ? unwrapInput(this.#takeHeld(call)) : missing
    if (complete && rest !== '') out.push({ type: 'tool-call-delta', block, text: rest })
    out.push({ type: 'tool-call-end', block, complete })
    call.ended = true
    this.#queue.shift()
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
