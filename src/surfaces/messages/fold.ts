import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import {
  type ContentBlock,
  type DeltaType,
  deltaFields,
  emptyMessage,
  type MessageObject,
  type MessageSink,
} from './message.ts'

/** Adds up what a stream would tell to the message that is answered without streaming. */
export type MessageFold = MessageSink & { message(): MessageObject }

export function createMessageFold(names: { id: string; model: string }): MessageFold {
  let message: JsonObject = { ...emptyMessage({ ...names, usage: {} }) }
  let usage: JsonObject = {}
  const content: FoldedBlock[] = []
  let open: FoldedBlock | null = null

  const told = (change: () => void): '' => {
    change()
    return ''
  }
  const begin = ({ usage: counted, content: given, ...head }: JsonObject) => {
    message = { ...message, ...head, ...names }
    usage = { ...asRecord(counted) }
    if (Array.isArray(given)) content.push(...given.filter(isRecord).map(foldBlock))
  }
  const start = (block: JsonObject) => {
    open = foldBlock(block)
    content.push(open)
  }
  const stop = () => {
    if (open !== null) closeBlock(open)
    open = null
  }
  const end = (fields: JsonObject, counted: unknown) => {
    message = { ...message, ...fields }
    // Counts are of the whole message; one that is null says nothing of its own.
    for (const [name, count] of Object.entries(asRecord(counted))) {
      if (count !== null) usage[name] = count
    }
  }
  const take = ({ type, ...fields }: JsonObject) => {
    if (type === 'message_start') begin(asRecord(fields['message']))
    else if (type === 'content_block_start') start(asRecord(fields['content_block']))
    else if (type === 'content_block_delta') grow(open, asRecord(fields['delta']))
    else if (type === 'content_block_stop') stop()
    else if (type === 'message_delta') {
      const { delta, usage: counted, ...rest } = fields
      end({ ...rest, ...asRecord(delta) }, counted)
    }
  }
  return {
    begin: (given) => told(() => begin(given)),
    start: (block) => told(() => start(block)),
    delta: (type, text) => told(() => grow(open, { type, [deltaFields[type]]: text })),
    cite: (citation) => told(() => grow(open, { type: 'citations_delta', citation })),
    stop: () => told(stop),
    isOpen: () => open !== null,
    end: (fields, counted) => told(() => end(fields, counted)),
    relay(frames) {
      for (const { payload } of frames) take(payload)
      return ''
    },
    fail: () => '',
    message: () => ({
      ...emptyMessage({ ...names, usage }),
      ...message,
      ...names,
      content: content.map(({ block }) => block),
      usage,
    }),
  }
}

type FoldedBlock = {
  block: ContentBlock
  /** The input as it comes; null where none came. */
  json: string | null
}

function foldBlock(block: JsonObject): FoldedBlock {
  return { block: { ...block, type: String(block['type']) }, json: null }
}

function grow(open: FoldedBlock | null, delta: JsonObject): void {
  if (open === null) return
  const { block } = open
  const { type } = delta
  if (type === 'citations_delta') {
    const citations = Array.isArray(block['citations']) ? block['citations'] : []
    open.block = { ...block, citations: [...citations, delta['citation']] }
  } else if (type === 'compaction_delta') {
    open.block = { ...block, content: `${block['content'] ?? ''}${delta['content'] ?? ''}` }
  } else if (isDelta(type)) {
    const text = String(delta[deltaFields[type]] ?? '')
    if (type === 'input_json_delta') open.json = (open.json ?? '') + text
    else if (type === 'signature_delta') open.block = { ...block, signature: text }
    else {
      const field = deltaFields[type]
      open.block = { ...block, [field]: `${block[field] ?? ''}${text}` }
    }
  }
}

function isDelta(type: unknown): type is DeltaType {
  return typeof type === 'string' && type in deltaFields
}

/** Input that was cut off, or is no object, cannot be told in an object; a stream shows it as it is. */
function closeBlock(closing: FoldedBlock): void {
  if (closing.json === null || closing.json === '') return
  closing.block = { ...closing.block, input: asRecord(parseJson(closing.json)) }
}
