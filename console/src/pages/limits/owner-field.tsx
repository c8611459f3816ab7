import { useId, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { ApiKey } from '../../api/generated/types.ts'
import { may } from '../../session/session.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { useQuery } from '../../ui/query.ts'
import type { Scope } from './limit-entries.ts'

type OwnerProps = { value: string; onValue: (id: string) => void }

const foundMax = 5

/** Whose limits: chosen from what there is, or given by name or id. */
export function OwnerField({
  scope,
  keys,
  ...props
}: OwnerProps & { scope: Scope; keys: readonly ApiKey[] }) {
  if (scope === 'key') {
    return (
      <SelectField
        label={text('limits.one.key')}
        {...props}
        options={[
          { value: '', label: text('limits.choose') },
          ...keys.map(({ id, name, masked }) => ({
            value: id,
            label: `${name} · ${masked}`,
          })),
        ]}
      />
    )
  }
  return scope === 'user' && may('can_manage_groups') ? (
    <UserField {...props} />
  ) : (
    <NameField scope={scope} {...props} />
  )
}

function NameField({ scope, value, onValue }: OwnerProps & { scope: Scope }) {
  const id = useId()
  const { data } = useQuery(async (signal) => {
    if (scope === 'model') {
      return (await call('GET /v1/models', { signal })).data.map((model) => model.id)
    }
    if (scope !== 'group' || !may('can_manage_groups')) return []
    return (await call('GET /v1/groups', { query: { limit: 100 }, signal })).data.map(
      (group) => group.name,
    )
  }, scope)
  return (
    <>
      <TextField
        label={text(`limits.one.${scope as 'group'}`)}
        hint={scope === 'user' ? text('limits.user_id_hint') : undefined}
        autocomplete="off"
        list={id}
        value={value}
        onValue={onValue}
      />
      <datalist id={id}>
        {data?.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}

function UserField({ value, onValue }: OwnerProps) {
  const [search, setSearch] = useState('')
  const [chosen, setChosen] = useState('')
  const searched = search.trim()
  const found = useQuery(
    async (signal) =>
      searched === ''
        ? []
        : (await call('GET /v1/users', { query: { q: searched, limit: foundMax }, signal })).data,
    `users ${searched}`,
  )
  return (
    <div class="stack tight">
      <TextField
        type="search"
        label={text('limits.one.user')}
        hint={
          value === '' ? text('groups.member_add_hint') : text('limits.chosen', { name: chosen })
        }
        value={search}
        onValue={setSearch}
      />
      {searched !== '' && (
        <div class="row">
          {found.data?.map(({ id, name, subject }) => (
            <Button
              key={id}
              size="small"
              aria-pressed={id === value}
              icon={id === value ? 'check' : 'plus'}
              onClick={() => {
                onValue(id)
                setChosen(name ?? subject)
                setSearch('')
              }}
            >
              {name ?? subject}
            </Button>
          ))}
          {found.data?.length === 0 && <span class="muted">{text('users.none_found')}</span>}
        </div>
      )}
    </div>
  )
}
