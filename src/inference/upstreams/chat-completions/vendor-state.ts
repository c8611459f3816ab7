import { invalidResponse } from '#inference/decode-errors.ts'
import { readRecords, readString } from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject, parseJson, withoutNulls } from '#lib/json.ts'

/**
 * Fields that a server wants back unchanged with the next turn: `reasoning_details` (OpenRouter) and
 * `extra_content` of the message or of a call (Gemini's thought signatures). They travel as the sealed
 * payload of reasoning, so only their maker gets them.
 */
export type VendorState = {
  readonly details: JsonObject[]
  readonly extras: CallExtra[]
}

/** `callId`: null for the message itself. */
type CallExtra = { readonly callId: string | null; readonly extra: JsonObject }

/** Marks sealed payloads of this protocol. */
const prefix = 'chat:'
const stateCharsMax = 8_388_608

/** Collects the state of one response. */
export class VendorStateReader {
  #details: JsonObject[] = []
  #extras: CallExtra[] = []
  #chars = 0

  addDetails(details: unknown) {
    for (const detail of readRecords(details)) {
      this.#count(detail)
      mergeDetail(this.#details, detail)
    }
  }

  addExtra(callId: string | null, extra: unknown) {
    if (!isRecord(extra)) return
    this.#count(extra)
    this.#extras.push({ callId, extra })
  }

  /** The state since the last call, as a sealed payload; null if there is none. */
  take(): string | null {
    if (this.#details.length + this.#extras.length === 0) return null
    const state: VendorState = { details: this.#details, extras: this.#extras }
    this.#details = []
    this.#extras = []
    return prefix + JSON.stringify(state)
  }

  #count(value: JsonObject) {
    this.#chars += JSON.stringify(value).length
    if (this.#chars > stateCharsMax) throw invalidResponse('sent too many reasoning details')
  }
}

/** Adds the state of a sealed payload; other payloads contain none. */
export function openVendorState(sealed: string, into: VendorState): void {
  const state = sealed.startsWith(prefix) ? asRecord(parseJson(sealed.slice(prefix.length))) : {}
  for (const detail of readRecords(state['details'])) mergeDetail(into.details, detail)
  for (const { callId, extra } of readRecords(state['extras'])) {
    if (isRecord(extra)) into.extras.push({ callId: readString(callId) || null, extra })
  }
}

/** The text that details show, for servers that send it nowhere else. */
export function textOfDetails(details: unknown): string {
  return readRecords(details)
    .map((detail) => readString(detail['text']) || readString(detail['summary']))
    .join('')
}

/** The fields of details that arrive in pieces. */
const textFields: Readonly<Record<string, string>> = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
}

/** Appends a piece to the last detail if it continues it. */
function mergeDetail(details: JsonObject[], piece: JsonObject): void {
  const last = details.at(-1)
  const field = textFields[readString(piece['type'])]
  const continues = last?.['type'] === piece['type'] && last?.['index'] === piece['index']
  if (field === undefined || last === undefined || !continues) {
    details.push(piece)
    return
  }
  const text = readString(last[field]) + readString(piece[field])
  details[details.length - 1] = { ...last, ...withoutNulls(piece), [field]: text }
}
