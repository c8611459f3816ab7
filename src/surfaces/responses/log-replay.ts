import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { LogReplay } from '#responses/ending.ts'
import type { StoredItem } from '#responses/response.ts'
import { FrameWriter } from './frames.ts'
import { contentPart, type PartPlace, summaryPart, textFields } from './streamed-text.ts'

/** The item that was added and not ended. Its fields are those of the frames so far. */
type OpenItem = {
  readonly outputIndex: number
  readonly item: JsonObject
  part: { readonly place: PartPlace; readonly index: number; readonly fields: JsonObject } | null
  text: 'none' | 'open' | 'done'
}

/** Rebuilds the output of a response from its logged frames, when its worker is gone. */
export function createLogReplay(): LogReplay {
  const closed = new Map<number, StoredItem>()
  let open: OpenItem | null = null

  function apply(event: JsonObject) {
    const type = String(event['type'])
    const outputIndex = Number(event['output_index'])
    const item = event['item']
    if (type === 'response.output_item.added' && isRecord(item)) {
      open = { outputIndex, item, part: null, text: 'none' }
    } else if (type === 'response.output_item.done' && isStoredItem(item)) {
      closed.set(outputIndex, item)
      open = null
    } else if (open !== null && outputIndex === open.outputIndex) {
      update(open, type, event)
    }
  }
  return {
    add(frames) {
      for (const frame of frames.split('\n\n')) {
        const at = frame.indexOf('data: ')
        const event = at < 0 ? undefined : parseJson(frame.slice(at + 'data: '.length))
        if (isRecord(event)) apply(event)
      }
    },
    close(nextSequence) {
      if (open === null) return ''
      const { outputIndex } = open
      if ('status' in open.item) open.item['status'] = 'incomplete'
      const written = closeItem(open, new FrameWriter(nextSequence))
      if (isStoredItem(open.item)) closed.set(outputIndex, open.item)
      open = null
      return written
    },
    output: () => [...closed].sort(([one], [other]) => one - other).map(([, item]) => item),
  }
}

function update(open: OpenItem, type: string, event: JsonObject): void {
  for (const place of [contentPart, summaryPart]) {
    if (type === `${place.stem}.added`) openPart(open, place, event)
    if (type === `${place.stem}.done`) {
      if (open.part !== null) Object.assign(open.part.fields, asRecord(event['part']))
      open.part = null
    }
  }
  const target = open.part?.fields ?? open.item
  const text = textFields[String(target['type'])]
  if (text !== undefined && type === `${text.stem}.delta`) {
    target[text.field] = String(target[text.field] ?? '') + String(event['delta'])
    open.text = 'open'
    if (Array.isArray(target['logprobs']) && Array.isArray(event['logprobs']))
      target['logprobs'].push(...event['logprobs'])
  } else if (text !== undefined && type === `${text.stem}.done`) {
    target[text.field] = event[text.field]
    open.text = 'done'
  } else if (type === 'response.output_text.annotation.added') {
    if (Array.isArray(target['annotations'])) target['annotations'].push(event['annotation'])
  }
}

function openPart(open: OpenItem, place: PartPlace, event: JsonObject): void {
  const fields = asRecord(event['part'])
  const index = Number(event[place.indexName])
  const others = open.item[place.list]
  open.item[place.list] = [...(Array.isArray(others) ? others.slice(0, index) : []), fields]
  open.part = { place, index, fields }
  open.text = 'none'
}

/** The frames with which the renderer ends an item that was cut. */
function closeItem({ item, outputIndex, part, text }: OpenItem, writer: FrameWriter): string {
  const target = part?.fields ?? item
  const streamed = textFields[String(target['type'])]
  const index = part === null ? {} : { [part.place.indexName]: part.index }
  const at = { item_id: item['id'], output_index: outputIndex, ...index }
  let written = ''
  if (streamed !== undefined && text !== 'done' && (text === 'open' || !streamed.isOptional)) {
    const { stem, field } = streamed
    const logprobs = 'logprobs' in target ? { logprobs: target['logprobs'] } : {}
    written += writer.frame(`${stem}.done`, { ...at, [field]: target[field], ...logprobs })
  }
  if (part !== null)
    written += writer.frame(`${part.place.stem}.done`, { ...at, part: part.fields })
  return written + writer.frame('response.output_item.done', { output_index: outputIndex, item })
}

function isStoredItem(value: unknown): value is StoredItem {
  return isRecord(value) && typeof value['id'] === 'string' && typeof value['type'] === 'string'
}
