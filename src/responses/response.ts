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
