import type { ResponseObject, StoredItem } from '#responses/response.ts'

const encryptedReasoning = 'reasoning.encrypted_content'
const searchResults = 'file_search_call.results'

/** A stored response as clients see it. */
export function showResponse(response: ResponseObject, include: readonly string[]): ResponseObject {
  return { ...response, output: response.output.map((item) => showItem(item, include)) }
}

/** A stored item as it was streamed: reasoning in plain text or encrypted, search results if included. */
export function showItem(item: StoredItem, include: readonly string[]): StoredItem {
  const { id, type } = item
  if (type === 'file_search_call') {
    return include.includes(searchResults) ? item : withoutSearchResults(item)
  }
  if (type !== 'reasoning' || item['encrypted_content'] === undefined) return item
  const { content, encrypted_content, ...rest } = item
  const disclosed = content === undefined ? {} : { content }
  const shown = include.includes(encryptedReasoning) ? { encrypted_content } : disclosed
  return { ...rest, ...shown, id, type }
}

/** Search results can be long, so they are sent only on request. */
export function withoutSearchResults<T extends { readonly type: string }>(item: T): T {
  return item.type === 'file_search_call' ? { ...item, results: null } : item
}
