import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { ApiKey, LimitUse } from '../../api/generated/types.ts'
import { may } from '../../session/session.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Empty, Fault } from '../../ui/notice.tsx'
import { Card } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { useQuery } from '../../ui/query.ts'
import { labelOf } from '../../ui/schema/labels.ts'
import { Pager } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'
import type { Configuration } from '../settings/config.ts'
import { EntryDialog } from './entry-dialog.tsx'
import { type Entry, type Scope, useOf } from './limit-entries.ts'
import { amount, Hardness, Resets, UseBar } from './use-bars.tsx'

type EntriesProps = {
  scope: Scope
  config: Configuration
  entries: readonly Entry[]
  uses: readonly LimitUse[]
  onChange: () => void
}

/** The limits and budgets of one kind of owner, to look at and to change. */
export function Entries(props: EntriesProps) {
  return props.scope === 'key' ? <KeyEntries {...props} /> : <EntryList {...props} />
}

/** Keys have limits of their own; their budgets are in the settings. */
function KeyEntries({ entries, ...props }: EntriesProps) {
  const owner = may('can_manage_groups') ? { user_id: 'all' } : {}
  const query = usePaged(
    (page, signal) => call('GET /v1/api-keys', { query: { ...page, ...owner }, signal }),
    'keys',
  )
  if (query.error !== undefined) return <Fault error={query.error} onRetry={query.reload} />
  const keys = query.rows ?? []
  const merged = keys.map((key): Entry => {
    const budgets = entries.find(({ id }) => id === key.id)?.budgets ?? null
    return { id: key.id, limits: key.limits as Entry['limits'], budgets }
  })
  const others = query.pager.cursors.length > 0 ? [] : entries
  const unknown = others.filter(({ id }) => !keys.some((key) => key.id === id))
  return (
    <div>
      <EntryList
        {...props}
        entries={[...merged.filter(isSet), ...unknown]}
        keys={keys}
        onChange={() => {
          query.reload()
          props.onChange()
        }}
      />
      <Pager {...query.pager} />
    </div>
  )
}

function isSet({ limits, budgets }: Entry): boolean {
  return Object.keys(limits ?? {}).length + Object.keys(budgets ?? {}).length > 0
}

function EntryList({
  scope,
  config,
  entries,
  uses,
  keys = [],
  onChange,
}: EntriesProps & { keys?: readonly ApiKey[] }) {
  const [edited, setEdited] = useState<Entry | 'new' | null>(null)
  const nameOf = (id: string) =>
    scope === 'key'
      ? (keys.find((key) => key.id === id)?.name ?? null)
      : scope === 'user'
        ? (uses.find((use) => use.scope === 'user' && use.id === id)?.name ?? null)
        : id
  const remove = async (entry: Entry, name: string) => {
    const isSure = await confirm({
      title: text('limits.remove_title', { name }),
      consequence: text('limits.remove_consequence'),
      action: text('limits.remove'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      async () => {
        if (scope === 'key' && entry.limits !== null) {
          await call('PATCH /v1/api-keys/{api_key_id}', {
            path: { api_key_id: entry.id },
            body: { limits: null },
          })
        }
        const sections = Object.entries({
          limits: scope === 'key' ? null : entry.limits,
          budgets: entry.budgets,
        }).filter(([, values]) => values !== null)
        const body = Object.fromEntries(
          sections.map(([section]) => [section, { [scope]: { [entry.id]: null } }]),
        )
        if (sections.length > 0) await call('PATCH /v1/config', { body })
      },
      text('limits.removed', { name }),
    )
    onChange()
  }
  return (
    <Card
      title={text(`limits.scope.${scope}`)}
      flush
      actions={
        scope !== 'default' && (
          <Button size="small" icon="plus" onClick={() => setEdited('new')}>
            {text(`limits.add.${scope}`)}
          </Button>
        )
      }
    >
      <p class="muted entry-about">{text(`limits.about.${scope}`)}</p>
      {entries.length === 0 && (
        <Empty icon="limits" title={text('limits.none')}>
          {text('limits.none_hint')}
        </Empty>
      )}
      {entries.map((entry) => (
        <EntryRow
          key={entry.id}
          scope={scope}
          entry={entry}
          known={nameOf(entry.id)}
          uses={uses}
          onEdit={() => setEdited(entry)}
          onRemove={(name) => void remove(entry, name)}
        />
      ))}
      {edited !== null && (
        <EntryDialog
          scope={scope}
          config={config}
          entry={edited === 'new' ? null : edited}
          name={edited === 'new' ? '' : (nameOf(edited.id) ?? edited.id)}
          taken={entries}
          keys={keys}
          onClose={() => setEdited(null)}
          onSaved={() => {
            setEdited(null)
            onChange()
          }}
        />
      )}
    </Card>
  )
}

function EntryRow({
  scope,
  entry,
  known,
  uses,
  onEdit,
  onRemove,
}: {
  scope: Scope
  entry: Entry
  known: string | null
  uses: readonly LimitUse[]
  onEdit: () => void
  onRemove: (name: string) => void
}) {
  const { id, limits, budgets } = entry
  const found = useQuery(async (signal) => {
    if (scope !== 'user' || known !== null || !may('can_manage_groups')) return null
    const user = await call('GET /v1/users/{user_id}', { path: { user_id: id }, signal })
    return user.name ?? user.subject
  }, `${scope} ${id} ${known}`)
  const name = scope === 'default' ? text('limits.everyone') : (known ?? found.data ?? id)
  const values = [...Object.entries(limits ?? {}), ...Object.entries(budgets ?? {})]
  return (
    <section class="entry" aria-label={name}>
      <div class="entry-head">
        <strong class="breaking">{name}</strong>
        <span class="row">
          <Button
            kind="quiet"
            size="small"
            icon="edit"
            label={
              scope === 'default' ? text('limits.edit_everyone') : text('limits.edit', { name })
            }
            onClick={onEdit}
          />
          {scope !== 'default' && (
            <Button
              kind="quiet"
              size="small"
              icon="trash"
              label={text('limits.remove_name', { name })}
              onClick={() => onRemove(name)}
            />
          )}
        </span>
      </div>
      {values.length === 0 ? (
        <p class="muted">{text('limits.unlimited')}</p>
      ) : (
        <ul class="entry-values">
          {values.map(([limit, max]) => (
            <EntryValue
              key={limit}
              name={name}
              limit={limit}
              max={max}
              use={useOf(uses, { scope, id, limit })}
            />
          ))}
        </ul>
      )}
    </section>
  )
}

function EntryValue({
  name,
  limit,
  max,
  use,
}: {
  name: string
  limit: string
  max: number
  use: LimitUse | undefined
}) {
  const isHard = !limit.startsWith('soft_')
  const isBudget = /_per_(day|month)$/.test(limit)
  // Limits of users are used by each of them.
  const isOfOne = use !== undefined && use.set_by.scope !== use.scope
  return (
    <li>
      <span>{labelOf(limit, {})}</span>
      {limit === 'stored_bytes' ? (
        <span class="small">{amount(limit, max)}</span>
      ) : (
        <UseBar
          label={`${name}, ${labelOf(limit, {})}`}
          limit={limit}
          used={use?.used ?? 0}
          max={max}
          isHard={isHard}
        />
      )}
      <span class="row small">
        {isBudget && <Hardness isHard={isHard} />}
        {isOfOne && <span class="muted">{text('limits.most', { name: use.name ?? use.id })}</span>}
        {use !== undefined && use.used > 0 && (
          <span class="muted">
            {text('limits.resets')}: <Resets at={use.resets_at} />
          </span>
        )}
        {use !== undefined && use.share >= 1 && (
          <span class={isHard ? 'status bad' : 'status warn'}>
            {text(isHard ? 'limits.reached' : 'limits.exceeded', {
              share: format.number(use.share, { style: 'percent' }),
            })}
          </span>
        )}
      </span>
    </li>
  )
}
