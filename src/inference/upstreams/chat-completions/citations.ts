import type { Citation } from '#inference/events.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { ChatAnnotation, ChatChunk, ChatUrlCitation } from './wire.ts'

type UrlCitation = Extract<Citation, { kind: 'url' }>

/**
 * Collects the sources of an answer. Two forms exist: `url_citation` annotations, which say where
 * they belong, and a list of URLs beside the text, which refers to it by markers such as [2].
 */
export type Citations = {
  /** Looks at a chunk before its text is read. */
  readChunk(chunk: ChatChunk): void
  readAnnotations(annotations: readonly unknown[]): void
  /** Whether the text of the block is needed to find the markers. */
  wantsText(): boolean
  /** The citations of a text block that ends; null for text that was not kept. */
  take(text: string | null, textChars: number): UrlCitation[]
}

/** More sources than any search gives. */
const citationsMax = 1_024

export function createCitations(): Citations {
  let urls: readonly unknown[] = []
  let searchResults: readonly unknown[] = []
  let annotated: UrlCitation[] = []
  const given = new Set<string>()

  const at = (index: number, startIndex: number, endIndex: number): UrlCitation[] => {
    const url = urls[index]
    if (typeof url !== 'string' || given.size >= citationsMax) return []
    given.add(url)
    return [{ kind: 'url', url, title: findTitle(searchResults, url), startIndex, endIndex }]
  }

  return {
    readChunk(chunk) {
      if (Array.isArray(chunk.citations)) urls = chunk.citations
      if (Array.isArray(chunk.search_results)) searchResults = chunk.search_results
    },
    readAnnotations(annotations) {
      for (const annotation of annotations) {
        const citation = readAnnotation(annotation)
        if (citation !== null && annotated.length < citationsMax) annotated.push(citation)
      }
    },
    wantsText: () => urls.length > 0,
    take(text, textChars) {
      const marked = [...(text ?? '').matchAll(/\[(\d{1,4})\]/g)].flatMap((marker) =>
        at(Number(marker[1]) - 1, marker.index, marker.index + marker[0].length),
      )
      // A source that the text does not mark is still a source.
      const unmarked = urls.flatMap((url, index) =>
        typeof url === 'string' && given.has(url) ? [] : at(index, textChars, textChars),
      )
      const taken = [...annotated, ...marked, ...unmarked]
      annotated = []
      return taken
    },
  }
}

function findTitle(searchResults: readonly unknown[], url: string): string {
  const found = searchResults.find(
    (result): result is JsonObject => isRecord(result) && result['url'] === url,
  )
  return typeof found?.['title'] === 'string' ? found['title'] : url
}

function readAnnotation(annotation: unknown): UrlCitation | null {
  if (!isRecord(annotation)) return null
  const { url_citation }: ChatAnnotation = annotation
  if (!isRecord(url_citation)) return null
  const { url, title, start_index, end_index }: ChatUrlCitation = url_citation
  if (typeof url !== 'string') return null
  return {
    kind: 'url',
    url,
    title: typeof title === 'string' ? title : url,
    startIndex: typeof start_index === 'number' ? start_index : 0,
    endIndex: typeof end_index === 'number' ? end_index : 0,
  }
}
