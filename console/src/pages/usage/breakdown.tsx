import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { UsageGroup } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Empty } from '../../ui/notice.tsx'
import { usePaged } from '../../ui/paged.ts'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { type Measure, measured } from './period.ts'

type Dimension = 'model' | 'key' | 'user' | 'agent' | 'upstream' | 'outcome'

const dimensions: readonly Dimension[] = ['model', 'key', 'user', 'agent', 'upstream', 'outcome']

export type UsageFilter = { readonly from: string; readonly to: string; readonly user?: string }

/** Where the usage comes from: a row for each model, key or user. */
export function Breakdown({
  filter,
  filterKey,
  measure,
  canSeeUsers,
}: {
  filter: UsageFilter
  filterKey: string
  measure: Measure
  canSeeUsers: boolean
}) {
  const [chosen, setDimension] = useState<Dimension>('model')
  const dimension = chosen === 'user' && !canSeeUsers ? 'model' : chosen
  const query = usePaged(
    (page, signal) =>
      call('GET /v1/usage', { query: { ...filter, ...page, group_by: [dimension] }, signal }),
    `${filterKey} ${dimension}`,
  )
  const rows = query.rows?.toSorted((a, b) => measured(b, measure) - measured(a, measure))
  const highest = Math.max(1, ...(rows ?? []).map((row) => measured(row, measure)))
  const number = (
    name: string,
    label: string,
    read: (row: UsageGroup) => number,
  ): Column<UsageGroup> => ({
    name,
    label,
    align: 'right',
    cell: (row) => format.number(read(row)),
  })
  const columns: readonly Column<UsageGroup>[] = [
    {
      name: 'name',
      label: text(`usage.by.${dimension}`),
      cell: (row) => <strong>{nameOf(row, dimension)}</strong>,
    },
    {
      name: 'share',
      label: text(`usage.measure.${measure}`),
      cell: (row) => (
        <svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect width={(measured(row, measure) / highest) * 100} height={6} />
        </svg>
      ),
    },
    number('requests', text('usage.measure.requests'), (row) => row.requests),
    number('input', text('usage.input'), (row) => row.input_tokens),
    number('cached', text('usage.cached'), (row) => row.cached_tokens),
    number('output', text('usage.output'), (row) => row.output_tokens),
    {
      name: 'cost',
      label: text('usage.measure.cost'),
      align: 'right',
      cell: ({ cost }) => (cost === null ? '–' : format.number(cost, { maximumFractionDigits: 2 })),
    },
  ]
  return (
    <section class="stack tight">
      <div class="row between">
        <h2>{text('usage.breakdown')}</h2>
        <Segments
          label={text('usage.breakdown')}
          choices={dimensions
            .filter((name) => name !== 'user' || canSeeUsers)
            .map((name) => ({ name, label: text(`usage.by.${name}`) }))}
          selected={dimension}
          onSelect={setDimension}
        />
      </div>
      <Table
        label={text('usage.breakdown')}
        columns={columns}
        query={query}
        rows={rows}
        keyOf={({ id }) => id}
        empty={
          <Empty icon="usage" title={text('usage.none')}>
            {text('usage.none_hint')}
          </Empty>
        }
      />
      <Pager {...query.pager} />
    </section>
  )
}

function nameOf(row: UsageGroup, dimension: Dimension): string {
  switch (dimension) {
    case 'model':
      return row.model ?? '–'
    case 'key':
      return row.key_id == null ? text('usage.by_token') : (row.key_name ?? row.key_id)
    case 'user':
      return row.user_id == null ? text('usage.by_gateway') : (row.user_name ?? row.user_id)
    case 'agent':
      return row.agent_id ?? text('usage.by_itself')
    case 'upstream':
      return row.upstream ?? '–'
    case 'outcome':
      return row.outcome ?? '–'
  }
}
