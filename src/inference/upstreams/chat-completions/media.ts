import { invalidResponse } from '#inference/decode-errors.ts'
import type { HostedToolItem } from '#inference/events.ts'
import { readString, readText } from '#inference/upstream-fields.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'

/** Images and audio that a model returns, as items of the Responses format. */

/** `data:image/png;base64,…` */
const imageData = /^data:image\/([\w.+-]+);base64,/

/** An entry of `images`, or a content part; null without an image. */
export function imageItem(image: JsonObject): HostedToolItem | null {
  const { image_url: inner, url, b64_json: bare } = image
  const address = readText(asRecord(inner)['url']) ?? readText(inner) ?? readText(url)
  const item = { type: 'image_generation_call', status: 'completed' }
  if (address === null) {
    const result = readText(bare)
    return result === null ? null : { ...item, result }
  }
  const [head, format] = imageData.exec(address) ?? []
  // The format has no field for an address.
  if (head === undefined) return { ...item, result: null, image_url: address }
  return { ...item, result: address.slice(head.length), output_format: format }
}

const audioCharsMax = 67_108_864

/** Collects `audio`, whose data arrives in pieces that are encoded one by one. */
export class AudioReader {
  #pieces: string[] = []
  #chars = 0
  #transcript = ''

  /** Returns the next piece of the transcript. */
  add(audio: JsonObject): string {
    const data = readString(audio['data'])
    const transcript = readString(audio['transcript'])
    this.#chars += data.length
    if (this.#chars > audioCharsMax) throw invalidResponse('sent more audio than the limit allows')
    if (data !== '') this.#pieces.push(data)
    this.#transcript += transcript
    return transcript
  }

  get hasData(): boolean {
    return this.#pieces.length > 0
  }

  /** The audio so far as one item. */
  take(status: 'completed' | 'incomplete'): HostedToolItem {
    const pieces = this.#pieces.map((piece) => Buffer.from(piece, 'base64'))
    const data = Buffer.concat(pieces).toString('base64')
    this.#pieces = []
    return { type: 'output_audio', status, data, transcript: this.#transcript }
  }
}
