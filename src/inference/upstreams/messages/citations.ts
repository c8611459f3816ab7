import type { Citation } from '#inference/events.ts'
import { isRecord } from '#lib/json.ts'
import { readText } from './wire.ts'

/** More sources than any search gives. */
const citationsMax = 1_024

/** The sources of a text, which is told in pieces: each source belongs to one whole piece. */
export class Citations {
  #chars = 0
  #pieceStart = 0
  #pending: unknown[] = []
  #count = 0

  add(citation: unknown) {
    if (this.#count < citationsMax) this.#pending.push(citation)
    this.#count += 1
  }

  passText(chars: number) {
    this.#chars += chars
  }

  /** The length of the text so far. */
  chars(): number {
    return this.#chars
  }

  /** The citations of the piece that ends; none where it has no text that could cite. */
  take(): Citation[] {
    const range = { startIndex: this.#pieceStart, endIndex: this.#chars }
    const pending = this.#chars === 0 ? [] : this.#pending
    this.#pending = []
    this.#pieceStart = this.#chars
    return pending.flatMap((citation) => readCitation(citation, range))
  }
}

/** Places in documents that the request itself held have no counterpart among our citations. */
function readCitation(
  citation: unknown,
  range: { startIndex: number; endIndex: number },
): Citation[] {
  if (!isRecord(citation)) return []
  const url = readText(citation['url']) || readText(citation['source'])
  const title = readText(citation['title'])
  if (/^https?:/.test(url))
    return [{ kind: 'url', url, title: title === '' ? url : title, ...range }]
  const fileId = readText(citation['file_id'])
  if (fileId === '') return []
  const filename = readText(citation['document_title'])
  return [{ kind: 'file', fileId, filename, index: range.endIndex }]
}
