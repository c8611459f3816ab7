import type { ResponseObject, StoredItem } from '#responses/response.ts'

const encryptedReasoning = 'reasoning.encrypted_content'
/** The types of items with search results. */
const searchTypes = ['file_search_call', 'web_search_call']

/** A stored response as clients see it. */
export function showResponse(response: ResponseObject, include: readonly string[]): ResponseObject {
  return { ...response, output: response.output.map((item) => showItem(item, include)) }
}

/** A stored item as it was streamed: reasoning in plain text or encrypted, search results if included. */
export function showItem(item: StoredItem, include: readonly string[]): StoredItem {
  const { id, type } = item
  if (searchTypes.includes(type)) {
    return include.includes(`${type}.results`) ? item : withoutSearchResults(item)
  }
  if (type !== 'reasoning' || item['encrypted_content'] === undefined) return item
  const { content, encrypted_content, ...rest } = item
  const disclosed = content === undefined ? {} : { content }
  const shown = include.includes(encryptedReasoning) ? { encrypted_content } : disclosed
  return { ...rest, ...shown, id, type }
}

const none: readonly string[] = []

/** The types of items whose results a request includes. */
export function includedResults(include: readonly unknown[]): readonly string[] {
  if (include.length === 0) return none
  return searchTypes.filter((type) => include.includes(`${type}.results`))
}

/** Search results can be long, so they are sent only on request. */
export function withoutSearchResults<T extends { readonly type: string }>(item: T): T {
  if (item.type === 'file_search_call') return { ...item, results: null }
  if (item.type !== 'web_search_call' || !('results' in item)) return item
  const { results: _, ...rest } = item
  return rest as typeof item
}
