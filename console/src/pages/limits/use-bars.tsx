import type { ComponentChildren } from 'preact'
import type { LimitUse } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Progress } from '../../ui/progress.tsx'
import type { Query } from '../../ui/query.ts'
import { labelOf } from '../../ui/schema/labels.ts'
import { type Column, Table } from '../../ui/table.tsx'
import { nearShare } from './limit-entries.ts'

/** `used` of `max`, as a bar and in words. */
export function UseBar({
  label,
  limit,
  used,
  max,
  isHard,
}: {
  label: string
  limit: string
  used: number
  max: number
  isHard: boolean
}) {
  const share = max === 0 ? 1 : used / max
  const tone = share >= 1 ? (isHard ? 'bad' : 'warn') : share >= nearShare ? 'warn' : undefined
  return (
    <div class="use-bar">
      <Progress label={label} value={max === 0 ? 1 : used} max={max === 0 ? 1 : max} tone={tone} />
      <span class="small nowrap">
        {text('limits.used_of', { used: amount(limit, used), max: amount(limit, max) })}
      </span>
    </div>
  )
}

export function amount(limit: string, value: number): string {
  if (limit.endsWith('bytes')) return format.bytes(value)
  const digits = limit.includes('cost') && value < 1 ? 4 : 2
  return format.number(value, { maximumFractionDigits: digits })
}

/** "hard" refuses, "soft" warns. */
export function Hardness({ isHard }: { isHard: boolean }) {
  return (
    <span
      class={isHard ? 'tag' : 'tag accent'}
      title={text(isHard ? 'limits.hard_hint' : 'limits.soft_hint')}
    >
      {text(isHard ? 'limits.hard' : 'limits.soft')}
    </span>
  )
}

export function Resets({ at }: { at: string | null }) {
  if (at === null) return <span class="muted">{text('limits.resets_now')}</span>
  const isSoon = Date.parse(at) - Date.now() < 3_600_000
  return isSoon ? (
    <span class="nowrap">
      {text('limits.resets_in', {
        seconds: format.number(Math.max(0, Math.ceil((Date.parse(at) - Date.now()) / 1_000))),
      })}
    </span>
  ) : (
    <time class="nowrap" dateTime={at}>
      {format.time(at)}
    </time>
  )
}

/** Limits and budgets with their use, the fullest first. */
export function UseTable({
  label,
  query,
  rows,
  isOwn = false,
  empty,
}: {
  label: string
  query: Query<unknown>
  rows: readonly LimitUse[] | undefined
  isOwn?: boolean
  empty: ComponentChildren
}) {
  const columns: readonly Column<LimitUse>[] = [
    {
      name: 'owner',
      label: text('limits.owner'),
      cell: ({ scope, id, name }) => (
        <span class="row">
          <span class="tag">{text(`limits.one.${scope}`)}</span>
          <span class="breaking">
            {isOwn && scope === 'user' ? text('limits.you') : (name ?? id)}
          </span>
        </span>
      ),
    },
    {
      name: 'limit',
      label: text('limits.limit'),
      cell: ({ limit }) => labelOf(limit, {}),
    },
    {
      name: 'use',
      label: text('limits.use'),
      cell: ({ limit, used, max, hard, name, id }) => (
        <UseBar
          label={`${name ?? id}, ${labelOf(limit, {})}`}
          limit={limit}
          used={used}
          max={max}
          isHard={hard}
        />
      ),
    },
    {
      name: 'hard',
      label: text('limits.kind'),
      cell: ({ hard }) => <Hardness isHard={hard} />,
    },
    {
      name: 'resets',
      label: text('limits.resets'),
      cell: ({ resets_at: at }) => <Resets at={at} />,
    },
    {
      name: 'by',
      label: text('limits.set_by'),
      cell: ({ set_by: by }) => (
        <span class="muted breaking">
          {by.scope === 'group' ? (by.id ?? '') : text(`limits.set_by.${by.scope}`)}
        </span>
      ),
    },
  ]
  return (
    <Table
      label={label}
      columns={columns}
      query={query}
      rows={rows}
      keyOf={({ scope, id, limit }) => `${scope} ${id} ${limit}`}
      empty={empty}
    />
  )
}
