import { isRecord, type JsonObject } from '#lib/json.ts'
import type { ResponseObject, StoredItem } from '#responses/response.ts'
import type { LogSegment } from '#responses/stored.ts'
import { FrameWriter } from './frames.ts'
import { renderEnd } from './render.ts'
import { showResponse } from './show.ts'
import { contentPart, type PartPlace, summaryPart, textFields } from './streamed-text.ts'

/** Where the parts of an item are; other items have no parts. */
const partPlaces: Readonly<Record<string, PartPlace>> = {
  message: contentPart,
  reasoning: summaryPart,
}

const notEnded = {
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  usage: null,
  completed_at: null,
  output: [],
}

/** The stream of an ended response that was created without one: each text is one delta. */
export function renderEndedStream(stored: ResponseObject): LogSegment {
  const response = showResponse(stored, [])
  const writer = new FrameWriter()
  const begun = { response: { ...response, ...notEnded } }
  let frames = writer.frame('response.created', begun) + writer.frame('response.in_progress', begun)
  for (const [index, item] of response.output.entries()) frames += renderItem(item, index, writer)
  frames += renderEnd(response, writer)
  return { first: 0, last: writer.nextSequence() - 1, frames }
}

function renderItem(item: StoredItem, output_index: number, writer: FrameWriter): string {
  const place = partPlaces[item.type]
  const at = { item_id: item.id, output_index }
  const begun = { ...withoutText(item), ...(place === undefined ? {} : { [place.list]: [] }) }
  if ('status' in item) begun['status'] = 'in_progress'
  let frames = writer.frame('response.output_item.added', { output_index, item: begun })
  if (place === undefined) frames += renderText(item, at, writer)
  else frames += renderParts(item[place.list], { place, at, writer })
  return frames + writer.frame('response.output_item.done', { output_index, item })
}

function renderParts(
  parts: unknown,
  { place, at, writer }: { place: PartPlace; at: object; writer: FrameWriter },
): string {
  let frames = ''
  for (const [index, part] of (Array.isArray(parts) ? parts : []).filter(isRecord).entries()) {
    const here = { ...at, [place.indexName]: index }
    frames += writer.frame(`${place.stem}.added`, { ...here, part: withoutText(part) })
    frames += renderText(part, here, writer)
    frames += writer.frame(`${place.stem}.done`, { ...here, part })
  }
  return frames
}

/** The text of an item or part, and the annotations of the text. */
function renderText(given: JsonObject, at: object, writer: FrameWriter): string {
  const streamed = textFields[String(given['type'])]
  if (streamed === undefined || streamed.isOptional) return ''
  const { stem, field } = streamed
  const { [field]: text, annotations } = given
  const logprobs = 'logprobs' in given ? { logprobs: given['logprobs'] } : {}
  let frames = ''
  if (text !== '') frames += writer.frame(`${stem}.delta`, { ...at, delta: text, ...logprobs })
  for (const [index, annotation] of (Array.isArray(annotations) ? annotations : []).entries()) {
    const fields = { ...at, annotation_index: index, annotation }
    frames += writer.frame(`${stem}.annotation.added`, fields)
  }
  return frames + writer.frame(`${stem}.done`, { ...at, [field]: text, ...logprobs })
}

/** As in the frame that begins it. */
function withoutText(given: JsonObject): JsonObject {
  const streamed = textFields[String(given['type'])]
  const { content, encrypted_content, ...rest } = given
  const begun = given['type'] === 'reasoning' ? rest : { ...given }
  if ('annotations' in begun) begun['annotations'] = []
  if ('logprobs' in begun) begun['logprobs'] = []
  return streamed === undefined || streamed.isOptional ? begun : { ...begun, [streamed.field]: '' }
}
