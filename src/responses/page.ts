import { AppError } from '#lib/errors.ts'
import type { Page, PageRequest, StoredItem } from './response.ts'

/**
 * A page of items from their JSON texts, of which there is one more than the page holds, if there
 * are so many. It ends early at a null: an item that would make the page too large.
 */
export function pageOf(
  texts: readonly (string | null)[],
  { limit }: PageRequest,
): Page<StoredItem> {
  const data: StoredItem[] = []
  for (const text of texts.slice(0, limit)) {
    if (text === null) break
    data.push(JSON.parse(text))
  }
  return { data, hasMore: texts.length > data.length }
}

export function unknownCursor(): AppError {
  return new AppError('invalid_request', 'after must be the id of an item of this list.', {
    param: 'after',
  })
}
