import { useState } from 'preact/hooks'
import { type Polling, type Query, useQuery } from './query.ts'

type ListPage<Row> = {
  readonly data: readonly Row[]
  readonly has_more: boolean
  readonly last_id?: string | null
  /** Of lists with cursors, instead of the last id. */
  readonly next?: string | null
}

export type Paged<Row> = Query<ListPage<Row>> & {
  readonly rows: readonly Row[] | undefined
  /** For the `Pager`. */
  readonly pager: {
    readonly cursors: readonly string[]
    readonly next: string | null
    readonly onCursors: (cursors: readonly string[]) => void
  }
}

const pageLimit = 50

/** A list by pages. Another `key` (a filter) starts at the first page. */
export function usePaged<Row>(
  load: (page: { after?: string; limit: number }, signal: AbortSignal) => Promise<ListPage<Row>>,
  key: string,
  polling: Polling<ListPage<Row>> = {},
): Paged<Row> {
  const [state, setState] = useState<{ key: string; cursors: readonly string[] }>({
    key,
    cursors: [],
  })
  const cursors = state.key === key ? state.cursors : []
  const after = cursors.at(-1)
  const query = useQuery(
    (signal) => load({ limit: pageLimit, ...(after === undefined ? {} : { after }) }, signal),
    `${key} ${after ?? ''}`,
    polling,
  )
  const { data } = query
  return {
    ...query,
    rows: data?.data,
    pager: {
      cursors,
      next: data?.has_more === true ? (data.next ?? data.last_id ?? null) : null,
      onCursors: (next) => setState({ key, cursors: next }),
    },
  }
}
