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
  #message: JsonObject = {}
  readonly #usage: JsonObject = {}
  readonly #content: FoldedBlock[] = []
  #open: FoldedBlock | null = null

  constructor(names: { readonly id: string; readonly model: string }) {
    this.#names = names
  }

  add({ type, ...fields }: JsonObject): void {
    if (type === 'message_start') {
      const { usage, content, ...head } = asRecord(fields['message'])
      this.#message = head
      Object.assign(this.#usage, asRecord(usage))
      // A message may begin with complete blocks.
      if (Array.isArray(content)) this.#content.push(...content.filter(isRecord).map(foldBlock))
    } else if (type === 'content_block_start') {
      this.#open = foldBlock(asRecord(fields['content_block']))
      this.#content.push(this.#open)
    } else if (type === 'content_block_delta') {
      this.grow(asRecord(fields['delta']))
    } else if (type === 'content_block_stop') {
      if (this.#open !== null) closeBlock(this.#open)
      this.#open = null
    } else if (type === 'message_delta') {
      const { delta, usage, ...rest } = fields
      Object.assign(this.#message, rest, asRecord(delta))
      // Counts are cumulative; a null does not reset one.
      for (const [name, count] of Object.entries(asRecord(usage))) {
        if (count !== null) this.#usage[name] = count
      }
    }
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
      ...this.#message,
      ...names,
      content: this.#content.map(({ block }) => block),
      usage,
    }
  }
}

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
