import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type ContentBlock, emptyMessage, type MessageObject } from './message.ts'

/** The types of block deltas, with the field of their text. */
export const deltaFields = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
} as const

export type DeltaType = keyof typeof deltaFields

type FoldedBlock = {
  block: ContentBlock
  /** The JSON of the input so far; null if there is none. */
  json: string | null
}

/** Builds the complete message from the payloads of a stream. */
export class MessageFold {
  readonly #names: { readonly id: string; readonly model: string }
  #start: JsonObject = {}
  /** The fields that the end adds. */
  readonly #end: JsonObject = {}
  readonly #usage: JsonObject = {}
  readonly #content: FoldedBlock[] = []
  #open: FoldedBlock | null = null

  constructor(names: { readonly id: string; readonly model: string }) {
    this.#names = names
  }

  add(payload: JsonObject): void {
    switch (payload['type']) {
      case 'message_start':
        this.#addStart(asRecord(payload['message']))
        break
      case 'content_block_start':
        this.#open = foldBlock(asRecord(payload['content_block']))
        this.#content.push(this.#open)
        break
      case 'content_block_delta':
        this.grow(asRecord(payload['delta']))
        break
      case 'content_block_stop':
        if (this.#open !== null) closeBlock(this.#open)
        this.#open = null
        break
      case 'message_delta':
        this.#addEnd(payload)
    }
  }

  #addStart(message: JsonObject) {
    this.#start = message
    const { usage, content } = message
    Object.assign(this.#usage, asRecord(usage))
    // A message may begin with complete blocks.
    if (!Array.isArray(content)) return
    for (const block of content) if (isRecord(block)) this.#content.push(foldBlock(block))
  }

  #addEnd(payload: JsonObject) {
    for (const name in payload) if (!endFields.has(name)) this.#end[name] = payload[name]
    Object.assign(this.#end, asRecord(payload['delta']))
    const usage = asRecord(payload['usage'])
    // Counts are cumulative; a null does not reset one.
    for (const name in usage) if (usage[name] !== null) this.#usage[name] = usage[name]
  }

  /** Adds a delta to the open block, if any. */
  grow(delta: JsonObject): void {
    if (this.#open !== null) growBlock(this.#open, delta)
  }

  message(): MessageObject {
    const names = this.#names
    const usage = this.#usage
    return {
      ...emptyMessage({ ...names, usage }),
      ...this.#start,
      ...this.#end,
      ...names,
      content: this.#content.map(({ block }) => block),
      usage,
    }
  }
}

/** The fields of `message_delta` that are not fields of the message. */
const endFields: ReadonlySet<string> = new Set(['type', 'delta', 'usage'])

function foldBlock(block: JsonObject): FoldedBlock {
  return { block: { ...block, type: String(block['type']) }, json: null }
}

function growBlock(open: FoldedBlock, delta: JsonObject): void {
  const { block } = open
  const { type } = delta
  if (type === 'citations_delta') {
    const citations = Array.isArray(block['citations']) ? block['citations'] : []
    open.block = { ...block, citations: [...citations, delta['citation']] }
  } else if (type === 'compaction_delta') {
    open.block = { ...block, content: `${block['content'] ?? ''}${delta['content'] ?? ''}` }
  } else if (isDelta(type)) {
    const field = deltaFields[type]
    const text = String(delta[field] ?? '')
    if (type === 'input_json_delta') open.json = (open.json ?? '') + text
    else if (type === 'signature_delta') open.block = { ...block, signature: text }
    else open.block = { ...block, [field]: `${block[field] ?? ''}${text}` }
  }
}

function isDelta(type: unknown): type is DeltaType {
  return typeof type === 'string' && type in deltaFields
}

/** Incomplete input, or input that is not an object, becomes an empty object; a stream shows it as is. */
function closeBlock(closing: FoldedBlock): void {
  if (closing.json === null || closing.json === '') return
  closing.block = { ...closing.block, input: asRecord(parseJson(closing.json)) }
}
