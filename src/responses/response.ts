import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'

/** An input or output item of a response, in wire format. */
export type StoredItem = JsonObject & { readonly id: string; readonly type: string }

export type ResponseStatus =
  | 'queued'
  | 'in_progress'
  | 'completed'
  | 'incomplete'
  | 'failed'
  | 'cancelled'

/**
 * A Response object in wire format. The stored object holds every sealed payload of its output; the
 * surface decides which of them a client receives.
 */
export type ResponseObject = JsonObject & {
  readonly id: string
  readonly status: ResponseStatus
  readonly output: readonly StoredItem[]
}

export function isTerminal(status: ResponseStatus): boolean {
  return status !== 'queued' && status !== 'in_progress'
}

/** Cursor pagination: `after` is the id of the last item of the previous page. */
export type PageRequest = {
  readonly after: string | null
  readonly limit: number
  readonly order: 'asc' | 'desc'
}

export type Page<T> = { readonly data: readonly T[]; readonly hasMore: boolean }

/**
 * Builds a page from the JSON texts of at most `limit + 1` items. The page ends early at a null: an
 * item that would exceed the size limit of the page.
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
