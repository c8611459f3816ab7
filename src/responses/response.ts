import type { JsonObject } from '#lib/json.ts'

/** An item of a response, input or output, as it stands on the wire. */
export type StoredItem = JsonObject & { readonly id: string; readonly type: string }

export type ResponseStatus =
  | 'queued'
  | 'in_progress'
  | 'completed'
  | 'incomplete'
  | 'failed'
  | 'cancelled'

/**
 * A Response object as it stands on the wire. What is stored holds every sealed payload of its
 * output; the surface decides which of them a caller gets to see.
 */
export type ResponseObject = JsonObject & {
  readonly id: string
  readonly status: ResponseStatus
  readonly output: readonly StoredItem[]
}

export function isOver(status: ResponseStatus): boolean {
  return status !== 'queued' && status !== 'in_progress'
}

/** How a list is read: `after` is the id of the last item of the page before. */
export type PageRequest = {
  readonly after: string | null
  readonly limit: number
  readonly order: 'asc' | 'desc'
}

export type Page<T> = { readonly data: readonly T[]; readonly hasMore: boolean }
