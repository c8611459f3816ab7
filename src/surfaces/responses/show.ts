import type { ResponseObject, StoredItem } from '#responses/response.ts'

const sealedReasoning = 'reasoning.encrypted_content'
const searchResults = 'file_search_call.results'

/** A stored response as its caller gets to see it. */
export function showResponse(response: ResponseObject, include: readonly string[]): ResponseObject {
  return { ...response, output: response.output.map((item) => showItem(item, include)) }
}

/**
 * As it was streamed: reasoning in the open or, where that is asked for, sealed, and searches with
 * what they have found only where that is asked for.
 */
export function showItem(item: StoredItem, include: readonly string[]): StoredItem {
  const { id, type } = item
  if (type === 'file_search_call') {
    return include.includes(searchResults) ? item : withoutSearchResults(item)
  }
  if (type !== 'reasoning' || item['encrypted_content'] === undefined) return item
  const { content, encrypted_content, ...rest } = item
  const asked = include.includes(sealedReasoning)
  const form = asked ? { encrypted_content } : content === undefined ? {} : { content }
  return { ...rest, ...form, id, type }
}

/** What a search of files has found may be long, and is for those who ask for it. */
export function withoutSearchResults<T extends { readonly type: string }>(item: T): T {
  return item.type === 'file_search_call' ? { ...item, results: null } : item
}
