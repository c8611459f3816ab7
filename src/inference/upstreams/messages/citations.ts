import type { Citation } from '#inference/events.ts'
import { isRecord } from '#lib/json.ts'
import { readText } from './wire.ts'

/** The sources of a text, which is told in pieces: each source belongs to one whole piece. */
export type Citations = {
  add(citation: unknown): void
  passText(chars: number): void
  /** The length of the text so far. */
  chars(): number
  /** The citations of the piece that ends; none where it has no text that could cite. */
  take(): Citation[]
}

/** More sources than any search gives. */
const citationsMax = 1_024

export function createCitations(): Citations {
  let chars = 0
  let pieceStart = 0
  let pending: unknown[] = []
  let count = 0
  return {
    add(citation) {
      if (count++ < citationsMax) pending.push(citation)
    },
    passText(added) {
      chars += added
    },
    chars: () => chars,
    take() {
      const range = { startIndex: pieceStart, endIndex: chars }
      const taken = chars === 0 ? [] : pending.flatMap((citation) => readCitation(citation, range))
      pending = []
      pieceStart = chars
      return taken
    },
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
