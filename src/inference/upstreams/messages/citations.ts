import type { Citation } from '#inference/events.ts'
import { citationsMax, readString } from '#inference/upstream-fields.ts'
import { isRecord } from '#lib/json.ts'

/** The citations of a text, which arrives in pieces: each citation covers one whole piece. */
export class Citations {
  #chars = 0
  #pieceStart = 0
  #pending: unknown[] = []
  #count = 0

  add(citation: unknown) {
    if (this.#count < citationsMax) this.#pending.push(citation)
    this.#count += 1
  }

  advance(chars: number) {
    this.#chars += chars
  }

  /** The length of the text so far. */
  chars(): number {
    return this.#chars
  }

  /** The citations of the piece that ends; none where it has no text. */
  take(): Citation[] {
    const range = { startIndex: this.#pieceStart, endIndex: this.#chars }
    const pending = this.#chars === 0 ? [] : this.#pending
    this.#pending = []
    this.#pieceStart = this.#chars
    return pending.flatMap((citation) => readCitation(citation, range))
  }
}

/** Returns none for a position in a document of the request, which events cannot represent. */
function readCitation(
  citation: unknown,
  range: { startIndex: number; endIndex: number },
): Citation[] {
  if (!isRecord(citation)) return []
  const url = readString(citation['url']) || readString(citation['source'])
  const title = readString(citation['title'])
  if (/^https?:/.test(url))
    return [{ kind: 'url', url, title: title === '' ? url : title, ...range }]
  const fileId = readString(citation['file_id'])
  if (fileId === '') return []
  const filename = readString(citation['document_title'])
  return [{ kind: 'file', fileId, filename, index: range.endIndex }]
}
