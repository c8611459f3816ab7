import type { ComponentChildren } from 'preact'
import { text } from '../texts/texts.ts'
import { Button } from './button.tsx'
import { Fault } from './notice.tsx'
import type { Query } from './query.ts'

export type Column<Row> = {
  readonly name: string
  readonly label: string
  /** In place of the label, such as a checkbox for all rows. */
  readonly head?: ComponentChildren
  readonly align?: 'right' | 'actions'
  readonly cell: (row: Row) => ComponentChildren
}

const skeletonRows = [0, 1, 2, 3]

/** A table with its loading, empty and failed states. */
export function Table<Row>({
  label,
  columns,
  query,
  rows,
  keyOf,
  empty,
}: {
  label: string
  columns: readonly Column<Row>[]
  query: Query<unknown>
  rows: readonly Row[] | undefined
  keyOf: (row: Row) => string
  empty: ComponentChildren
}) {
  if (query.error !== undefined && rows === undefined) {
    return <Fault error={query.error} onRetry={query.reload} />
  }
  if (rows?.length === 0) return <div class="card">{empty}</div>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="table-box" aria-label={label} tabIndex={0}>
      <table class="table" aria-busy={rows === undefined}>
        <caption class="visually-hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={column.align}>
                {column.align === 'actions' ? (
                  <span class="visually-hidden">{column.label}</span>
                ) : (
                  (column.head ?? column.label)
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows === undefined
            ? skeletonRows.map((row) => (
                <tr key={row}>
                  {columns.map((column) => (
                    <td key={column.name}>
                      <div class="skeleton" />
                    </td>
                  ))}
                </tr>
              ))
            : rows.map((row) => (
                <tr key={keyOf(row)}>
                  {columns.map((column) => (
                    <td key={column.name} class={column.align}>
                      {column.cell(row)}
                    </td>
                  ))}
                </tr>
              ))}
        </tbody>
      </table>
    </section>
  )
}

/** Pages by cursor: `cursors` are the last ids of the pages before this one. */
export function Pager({
  cursors,
  next,
  onCursors,
}: {
  cursors: readonly string[]
  next: string | null
  onCursors: (cursors: readonly string[]) => void
}) {
  if (cursors.length === 0 && next === null) return null
  return (
    <nav class="table-foot" aria-label={text('table.pages')}>
      <span class="small muted">{text('table.page', { number: cursors.length + 1 })}</span>
      <div class="row">
        <Button
          size="small"
          disabled={cursors.length === 0}
          onClick={() => onCursors(cursors.slice(0, -1))}
        >
          {text('table.previous')}
        </Button>
        <Button
          size="small"
          disabled={next === null}
          onClick={() => next !== null && onCursors([...cursors, next])}
        >
          {text('table.next')}
        </Button>
      </div>
    </nav>
  )
}
