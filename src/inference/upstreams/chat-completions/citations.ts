import type { Citation } from '#inference/events.ts'
import { citationsMax, readNumber, readRecords } from '#inference/upstream-fields.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'

type UrlCitation = Extract<Citation, { kind: 'url' }>

const none: readonly never[] = []

/**
 * Collects the citations of a response. Servers send `url_citation` annotations, which contain
 * positions, or a list of URLs, to which the text refers by markers such as [2].
 */
export class Citations {
  #cited: Set<string> | null = null
  #urls: readonly unknown[] = none
  #searchResults: readonly unknown[] = none
  #annotated: readonly UrlCitation[] = none

  /** Called with each chunk, before its text is read. */
  readChunk({ citations, search_results: searchResults }: JsonObject) {
    if (Array.isArray(citations)) this.#urls = citations
    if (Array.isArray(searchResults)) this.#searchResults = searchResults
  }

  readAnnotation({ url_citation: cited }: JsonObject) {
    if (!isRecord(cited) || this.#annotated.length >= citationsMax) return
    const { url, title, start_index: start, end_index: end } = cited
    if (typeof url !== 'string') return
    const citation = {
      kind: 'url' as const,
      url,
      title: typeof title === 'string' ? title : url,
      startIndex: readNumber(start) ?? 0,
      endIndex: readNumber(end) ?? 0,
    }
    this.#annotated = [...this.#annotated, citation]
  }

  /** Whether the text of the block has to be kept to find the markers. */
  wantsText(): boolean {
    return this.#urls.length > 0
  }

  /** The citations of a text block that ends. `text`: null where it was not kept. */
  take(text: string | null, textChars: number): readonly UrlCitation[] {
    if (this.#urls.length === 0 && this.#annotated.length === 0) return none
    const marked = [...(text ?? '').matchAll(/\[(\d{1,4})\]/g)].flatMap((marker) =>
      this.#at(Number(marker[1]) - 1, marker.index, marker.index + marker[0].length),
    )
    // Sources without a marker are cited at the end of the text.
    const unmarked = this.#urls.flatMap((url, index) =>
      typeof url === 'string' && this.#cited?.has(url) ? [] : this.#at(index, textChars, textChars),
    )
    const taken = [...this.#annotated, ...marked, ...unmarked]
    this.#annotated = none
    return taken
  }

  #at(index: number, startIndex: number, endIndex: number): UrlCitation[] {
    const url = this.#urls[index]
    this.#cited ??= new Set()
    if (typeof url !== 'string' || this.#cited.size >= citationsMax) return []
    this.#cited.add(url)
    return [{ kind: 'url', url, title: findTitle(this.#searchResults, url), startIndex, endIndex }]
  }
}

function findTitle(searchResults: readonly unknown[], url: string): string {
  const found = readRecords(searchResults).find((result) => result['url'] === url)
  return typeof found?.['title'] === 'string' ? found['title'] : url
}
