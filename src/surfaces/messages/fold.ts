import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import {
  type ContentBlock,
  type DeltaType,
  deltaFields,
  emptyMessage,
  type MessageObject,
  type MessageSink,
} from './message.ts'

/** Builds the complete message from the calls that would write a stream. */
export type MessageFold = MessageSink & { message(): MessageObject }

export function createMessageFold(names: { id: string; model: string }): MessageFold {
  let message: JsonObject = { ...emptyMessage({ ...names, usage: {} }) }
  let usage: JsonObject = {}
  const content: FoldedBlock[] = []
  let open: FoldedBlock | null = null

  const silently = (change: () => void): '' => {
    change()
    return ''
  }
  const begin = ({ usage: initialUsage, content: initialContent, ...head }: JsonObject) => {
    message = { ...message, ...head, ...names }
    usage = { ...asRecord(initialUsage) }
    if (Array.isArray(initialContent))
      content.push(...initialContent.filter(isRecord).map(foldBlock))
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
    // Counts are cumulative; a null does not reset one.
    for (const [name, count] of Object.entries(asRecord(counted))) {
      if (count !== null) usage[name] = count
    }
  }
  const addFrame = ({ type, ...fields }: JsonObject) => {
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
    begin: (initial) => silently(() => begin(initial)),
    start: (block) => silently(() => start(block)),
    delta: (type, text) => silently(() => grow(open, { type, [deltaFields[type]]: text })),
    cite: (citation) => silently(() => grow(open, { type: 'citations_delta', citation })),
    stop: () => silently(stop),
    isOpen: () => open !== null,
    end: (fields, counted) => silently(() => end(fields, counted)),
    relay(frames) {
      for (const { payload } of frames) addFrame(payload)
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
  /** The JSON of the input so far; null if there is none. */
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

/** Incomplete input, or input that is not an object, becomes an empty object; a stream shows it as is. */
function closeBlock(closing: FoldedBlock): void {
  if (closing.json === null || closing.json === '') return
  closing.block = { ...closing.block, input: asRecord(parseJson(closing.json)) }
}
