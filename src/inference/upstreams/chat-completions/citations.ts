import type { Citation } from '#inference/events.ts'
import { citationsMax, readNumber, readRecords } from '#inference/upstream-fields.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'

type UrlCitation = Extract<Citation, { kind: 'url' }>

/**
 * Collects the citations of a response. Servers send `url_citation` annotations, which contain
 * positions, or a list of URLs, to which the text refers by markers such as [2].
 */
export class Citations {
  readonly #cited = new Set<string>()
  #urls: readonly unknown[] = []
  #searchResults: readonly unknown[] = []
  #annotated: UrlCitation[] = []

  /** Called with each chunk, before its text is read. */
  readChunk({ citations, search_results: searchResults }: JsonObject) {
    if (Array.isArray(citations)) this.#urls = citations
    if (Array.isArray(searchResults)) this.#searchResults = searchResults
  }

  readAnnotation({ url_citation: cited }: JsonObject) {
    if (!isRecord(cited) || this.#annotated.length >= citationsMax) return
    const { url, title, start_index: start, end_index: end } = cited
    if (typeof url !== 'string') return
    this.#annotated.push({
      kind: 'url',
      url,
      title: typeof title === 'string' ? title : url,
      startIndex: readNumber(start) ?? 0,
      endIndex: readNumber(end) ?? 0,
    })
  }

  /** Whether the text of the block has to be kept to find the markers. */
  wantsText(): boolean {
    return this.#urls.length > 0
  }

  /** The citations of a text block that ends. `text`: null where it was not kept. */
  take(text: string | null, textChars: number): UrlCitation[] {
    const marked = [...(text ?? '').matchAll(/\[(\d{1,4})\]/g)].flatMap((marker) =>
      this.#at(Number(marker[1]) - 1, marker.index, marker.index + marker[0].length),
    )
    // Sources without a marker are cited at the end of the text.
    const unmarked = this.#urls.flatMap((url, index) =>
      typeof url === 'string' && this.#cited.has(url) ? [] : this.#at(index, textChars, textChars),
    )
    const taken = [...this.#annotated, ...marked, ...unmarked]
    this.#annotated = []
    return taken
  }

  #at(index: number, startIndex: number, endIndex: number): UrlCitation[] {
    const url = this.#urls[index]
    if (typeof url !== 'string' || this.#cited.size >= citationsMax) return []
    this.#cited.add(url)
    return [{ kind: 'url', url, title: findTitle(this.#searchResults, url), startIndex, endIndex }]
  }
}

function findTitle(searchResults: readonly unknown[], url: string): string {
  const found = readRecords(searchResults).find((result) => result['url'] === url)
  return typeof found?.['title'] === 'string' ? found['title'] : url
}
