import { useState } from 'preact/hooks'
import type { ApiKey, CreatedApiKey } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Empty } from '../../ui/notice.tsx'
import { usePaged } from '../../ui/paged.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { announce, announceFault, perform } from '../../ui/toasts.tsx'
import { KeyForm } from './key-form.tsx'
import type { KeyChange, KeySource } from './key-source.ts'
import { SecretDialog } from './secret-dialog.tsx'

/** The keys of a source, with everything that can be done with them. */
export function KeyList({
  source,
  isCreating,
  onCreating,
}: {
  source: KeySource
  isCreating: boolean
  onCreating: (isCreating: boolean) => void
}) {
  const [edited, setEdited] = useState<ApiKey | null>(null)
  const [created, setCreated] = useState<CreatedApiKey | null>(null)
  const query = usePaged(source.list, `keys ${source.id}`)

  const save = async (change: KeyChange) => {
    if (edited === null) {
      setCreated(await source.create(change))
      onCreating(false)
    } else {
      await source.update(edited.id, change)
      announce(text('keys.saved', { name: change.name }))
      setEdited(null)
    }
    query.reload()
  }
  const revoke = async ({ id, name }: ApiKey) => {
    const isSure = await confirm({
      title: text('keys.revoke_title', { name }),
      consequence: text('keys.revoke_consequence'),
      action: text('keys.revoke'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(() => source.remove(id), text('keys.revoked', { name }))
    query.reload()
  }
  const rotate = async ({ id, name }: ApiKey) => {
    const isSure = await confirm({
      title: text('keys.rotate_title', { name }),
      consequence: text('keys.rotate_consequence'),
      action: text('keys.rotate'),
    })
    if (!isSure) return
    try {
      setCreated(await source.rotate(id))
      query.reload()
    } catch (error) {
      announceFault(error)
    }
  }
  const columns: readonly Column<ApiKey>[] = [
    {
      name: 'name',
      label: text('keys.name'),
      cell: ({ name, masked }) => (
        <div>
          <strong>{name}</strong>
          <div class="small muted mono">{masked}</div>
        </div>
      ),
    },
    { name: 'reach', label: text('keys.reach'), cell: (key) => <Reach apiKey={key} /> },
    {
      name: 'created',
      label: text('keys.created'),
      cell: ({ created_at: at }) => <span class="nowrap">{format.date(at)}</span>,
    },
    {
      name: 'used',
      label: text('keys.used'),
      cell: ({ last_used_at: at }) => (
        <span class="nowrap">{at === null ? text('time.never') : format.time(at)}</span>
      ),
    },
    { name: 'expires', label: text('keys.expires'), cell: (key) => <Expiry apiKey={key} /> },
    actionsColumn((key) => [
      {
        label: text('keys.edit', { name: key.name }),
        icon: 'edit',
        onPress: () => setEdited(key),
      },
      {
        label: text('keys.rotate_name', { name: key.name }),
        icon: 'refresh',
        onPress: () => rotate(key),
      },
      {
        label: text('keys.revoke_name', { name: key.name }),
        icon: 'trash',
        onPress: () => revoke(key),
      },
    ]),
  ]
  return (
    <div>
      <Table
        label={text('keys.title')}
        columns={columns}
        query={query}
        rows={query.rows}
        keyOf={({ id }) => id}
        empty={
          <Empty
            icon="keys"
            title={text('keys.none')}
            action={
              <Button kind="primary" onClick={() => onCreating(true)}>
                {text('keys.create')}
              </Button>
            }
          >
            {text('keys.none_hint')}
          </Empty>
        }
      />
      <Pager {...query.pager} />
      {(isCreating || edited !== null) && (
        <KeyForm
          key={edited?.id ?? 'new'}
          apiKey={edited}
          onSave={save}
          onClose={() => {
            onCreating(false)
            setEdited(null)
          }}
        />
      )}
      {created !== null && <SecretDialog created={created} onClose={() => setCreated(null)} />}
    </div>
  )
}

/** What narrows a key. */
function Reach({ apiKey }: { apiKey: ApiKey }) {
  const { scopes, models, allowed_ips: addresses, limits } = apiKey
  const facts = [
    ...(scopes ?? []).map((scope) => text(`keys.scope.${scope}`)),
    ...(models ?? []),
    ...(addresses ?? []),
    ...Object.entries(limits ?? {}).map(
      ([name, value]) =>
        `${text(`limit.${name as 'requests_per_minute'}`)}: ${format.compact(value)}`,
    ),
  ]
  if (facts.length === 0) return <span class="muted">{text('keys.everything')}</span>
  return (
    <span class="row">
      {facts.map((fact) => (
        <span key={fact} class="tag">
          {fact}
        </span>
      ))}
    </span>
  )
}

function Expiry({ apiKey }: { apiKey: ApiKey }) {
  const { expires_at: at } = apiKey
  if (at === null) return <>{text('time.never')}</>
  const isOver = new Date(at).getTime() < Date.now()
  return <span class={`status ${isOver ? 'bad' : 'good'}`}>{format.date(at)}</span>
}
