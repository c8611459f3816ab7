import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Principal, Share } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useQuery } from '../../ui/query.ts'
import { perform } from '../../ui/toasts.tsx'
import type { ShareRole, ShareSource } from './share-source.ts'

const roles: readonly ShareRole[] = ['viewer', 'editor', 'manager']
const everyone: Principal = { type: 'everyone', id: '*', name: null }

function nameOf({ type, id, name }: Principal): string {
  return type === 'everyone' ? text('shares.everyone') : (name ?? id)
}

const roleOptions = () => roles.map((value) => ({ value, label: text(`shares.role.${value}`) }))

export function ShareDialog({ source, onClose }: { source: ShareSource; onClose: () => void }) {
  return (
    <Dialog wide title={text('shares.title', { name: source.name })} onClose={onClose}>
      <ShareList source={source} />
    </Dialog>
  )
}

/** Who may do what with something, and how to change it. */
export function ShareList({ source }: { source: ShareSource }) {
  const query = useQuery((signal) => source.list(signal), `shares ${source.id}`)
  const [search, setSearch] = useState('')
  const [role, setRole] = useState<ShareRole>('viewer')
  const shares = query.data
  const add = async (principal: Principal) => {
    await perform(
      () => source.create(principal, role),
      text('shares.added', { name: nameOf(principal) }),
    )
    setSearch('')
    query.reload()
  }
  return (
    <div class="stack">
      <div class="pair">
        <TextField
          type="search"
          label={text('shares.add')}
          hint={text('shares.add_hint')}
          value={search}
          onValue={setSearch}
        />
        <SelectField
          label={text('shares.role')}
          hint={text(`shares.role_hint.${role}`)}
          value={role}
          onValue={(value) => setRole(value as ShareRole)}
          options={roleOptions()}
        />
      </div>
      <Found search={search.trim()} onAdd={(principal) => void add(principal)} />
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {shares?.length === 0 && <p class="muted">{text('shares.none')}</p>}
      {shares !== undefined && shares.length > 0 && (
        <ul class="lines" aria-label={text('shares.list')}>
          {shares.map((share) => (
            <ShareRow key={share.id} share={share} source={source} onChange={query.reload} />
          ))}
        </ul>
      )}
    </div>
  )
}

/** Users and groups whose name matches, as buttons. */
function Found({ search, onAdd }: { search: string; onAdd: (principal: Principal) => void }) {
  const query = useQuery(
    async (signal) =>
      search === ''
        ? []
        : (await call('GET /v1/principals', { query: { q: search }, signal })).data,
    `principals ${search}`,
  )
  const found = search === '' ? [everyone] : query.data
  if (query.error !== undefined) return <Fault error={query.error} />
  return (
    <div class="row">
      {found?.map((principal) => (
        <Button
          key={`${principal.type} ${principal.id}`}
          size="small"
          icon="plus"
          onClick={() => onAdd(principal)}
        >
          {nameOf(principal)}
          {principal.type === 'group' && <span class="tag">{text('shares.group')}</span>}
        </Button>
      ))}
      {found?.length === 0 && <span class="muted">{text('shares.none_found')}</span>}
    </div>
  )
}

function ShareRow({
  share,
  source,
  onChange,
}: {
  share: Share
  source: ShareSource
  onChange: () => void
}) {
  const { id, principal, role, inherited_from: from } = share
  const name = nameOf(principal)
  const change = async (next: ShareRole) => {
    await perform(() => source.change(id, next), text('shares.changed', { name }))
    onChange()
  }
  const remove = async () => {
    await perform(() => source.remove(id), text('shares.removed', { name }))
    onChange()
  }
  return (
    <li>
      <div class="grow">
        <strong>{name}</strong>{' '}
        {principal.type === 'group' && <span class="tag">{text('shares.group')}</span>}
        {from !== null && (
          <div class="small muted">{text('shares.inherited', { name: from.name ?? from.id })}</div>
        )}
      </div>
      <select
        class="input role"
        aria-label={text('shares.role_of', { name })}
        value={role}
        disabled={from !== null}
        onChange={(event) => void change(event.currentTarget.value as ShareRole)}
      >
        {roleOptions().map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      <Button
        kind="quiet"
        size="small"
        icon="trash"
        label={text('shares.remove', { name })}
        disabled={from !== null}
        onClick={() => void remove()}
      />
    </li>
  )
}
