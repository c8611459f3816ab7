/** `after`: the id of the last item of the previous page. */
export type PageRequest = { readonly limit: number; readonly after?: string | undefined }

export type Page<T> = { readonly items: readonly T[]; readonly hasMore: boolean }

/** Another page follows if there are more rows than `limit`; one more is enough. */
export function pageOf<T>(rows: readonly T[], limit: number): Page<T> {
  return { items: rows.slice(0, limit), hasMore: rows.length > limit }
}
