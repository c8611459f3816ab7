import type { Page } from '#lib/page.ts'

type Cell = string | number | boolean | null

/** The columns of a table: the name, and the cell of a row. */
export type CsvColumns<Row> = readonly (readonly [name: string, cell: (row: Row) => Cell])[]

/** A spreadsheet would run such a text as a formula (OWASP, CSV injection). */
const formula = /^[=+\-@\t\r]/
const quoted = /[",\r\n]/

function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

/** As RFC 4180 has it; texts that begin like a formula get an apostrophe. */
function csvCell(cell: Cell): string {
  if (typeof cell !== 'string') return cell === null ? '' : String(cell)
  const text = formula.test(cell) ? `'${cell}` : cell
  return quoted.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/**
 * A table as CSV. At most one page is in memory: the next one is read when the client has taken the last.
 * The first is read before the response starts, so that a failure is a status; a later failure breaks
 * the connection.
 */
export async function csvResponse<Row>(
  name: string,
  columns: CsvColumns<Row>,
  readPage: (last: Row | null) => Promise<Page<Row>>,
): Promise<Response> {
  let page: Page<Row> | null = await readPage(null)
  const encoder = new TextEncoder()
  const render = ({ items }: Page<Row>) =>
    items.map((row) => csvLine(columns.map(([, cell]) => cell(row)))).join('')
  let opening = csvLine(columns.map(([title]) => title))
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (page === null) {
          controller.close()
          return
        }
        controller.enqueue(encoder.encode(opening + render(page)))
        opening = ''
        const last = page.items.at(-1) ?? null
        page = page.hasMore && last !== null ? await readPage(last) : null
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}.csv"`,
      'cache-control': 'no-store',
    },
  })
}

/** Whether a client asks for CSV, by its `Accept` header. */
export function acceptsCsv(accept: string | null): boolean {
  return (accept ?? '').split(',').some((type) => /^\s*text\/csv\s*(;|$)/i.test(type))
}
