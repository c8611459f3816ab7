import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Group, GroupMember } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Empty } from '../../ui/notice.tsx'
import { usePaged } from '../../ui/paged.ts'
import { useQuery } from '../../ui/query.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'

const foundMax = 5

/** Who is in a group. Members by token stay members until the identity provider says otherwise. */
export function Members({ group, onClose }: { group: Group; onClose: () => void }) {
  const [search, setSearch] = useState('')
  const path = { group_id: group.id }
  const query = usePaged(
    (page, signal) => call('GET /v1/groups/{group_id}/members', { path, query: page, signal }),
    `members ${group.id}`,
  )
  const searched = search.trim()
  const found = useQuery(
    async (signal) =>
      searched === ''
        ? []
        : (await call('GET /v1/users', { query: { q: searched, limit: foundMax }, signal })).data,
    `users ${searched}`,
  )
  const add = async (id: string, name: string) => {
    await perform(
      () => call('PUT /v1/groups/{group_id}/members/{user_id}', { path: { ...path, user_id: id } }),
      text('groups.member_added', { name, group: group.name }),
    )
    setSearch('')
    query.reload()
  }
  const remove = async (id: string, name: string) => {
    await perform(
      () =>
        call('DELETE /v1/groups/{group_id}/members/{user_id}', { path: { ...path, user_id: id } }),
      text('groups.member_removed', { name, group: group.name }),
    )
    query.reload()
  }
  const columns: readonly Column<GroupMember>[] = [
    {
      name: 'name',
      label: text('users.name'),
      cell: ({ name, subject }) => name ?? subject,
    },
    {
      name: 'sources',
      label: text('groups.source'),
      cell: ({ sources }) => sources.map((source) => text(`groups.source.${source}`)).join(', '),
    },
    actionsColumn(({ id, name, subject, sources }) => [
      sources.includes('manual') && {
        label: text('groups.member_remove', { name: name ?? subject }),
        icon: 'trash',
        onPress: () => remove(id, name ?? subject),
      },
    ]),
  ]
  return (
    <Dialog wide title={text('groups.members_of', { name: group.name })} onClose={onClose}>
      <TextField
        type="search"
        label={text('groups.member_add')}
        hint={text('groups.member_add_hint')}
        value={search}
        onValue={setSearch}
      />
      {searched !== '' && found.data !== undefined && (
        <div class="row">
          {found.data.map(({ id, name, subject }) => (
            <Button key={id} size="small" icon="plus" onClick={() => void add(id, name ?? subject)}>
              {name ?? subject}
            </Button>
          ))}
          {found.data.length === 0 && <span class="muted">{text('users.none_found')}</span>}
        </div>
      )}
      <Table
        label={text('groups.members_of', { name: group.name })}
        columns={columns}
        query={query}
        rows={query.rows}
        keyOf={({ id }) => id}
        empty={
          <Empty icon="groups" title={text('groups.members_none')}>
            {text('groups.member_add_hint')}
          </Empty>
        }
      />
      <Pager {...query.pager} />
    </Dialog>
  )
}
