import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Group } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Empty } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'
import { GroupForm } from './group-form.tsx'
import { Members } from './members.tsx'

export function GroupsPage() {
  const [edited, setEdited] = useState<Group | 'new' | null>(null)
  const [members, setMembers] = useState<Group | null>(null)
  const query = usePaged(
    (page, signal) => call('GET /v1/groups', { query: page, signal }),
    'groups',
  )
  const remove = async ({ id, name, members: count }: Group) => {
    const isSure = await confirm({
      title: text('groups.delete_title', { name }),
      consequence: text('groups.delete_consequence', { count }),
      action: text('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      () => call('DELETE /v1/groups/{group_id}', { path: { group_id: id } }),
      text('groups.deleted', { name }),
    )
    query.reload()
  }
  const columns: readonly Column<Group>[] = [
    {
      name: 'name',
      label: text('groups.name'),
      cell: ({ name, description, is_locked: isLocked }) => (
        <div>
          <span class="row">
            <strong>{name}</strong>
            {isLocked && <span class="tag">{text('groups.locked')}</span>}
          </span>
          <div class="small muted">{description}</div>
        </div>
      ),
    },
    {
      name: 'permissions',
      label: text('groups.permissions'),
      cell: ({ permissions }) => (
        <span class="row">
          {permissions.map((permission) => (
            <span key={permission} class="tag">
              {text(`permission.${permission}`)}
            </span>
          ))}
        </span>
      ),
    },
    {
      name: 'claim',
      label: text('groups.claim'),
      cell: ({ idp_claim: claim, name }) => <code>{claim ?? name}</code>,
    },
    {
      name: 'members',
      label: text('groups.members'),
      align: 'right',
      cell: ({ members: count }) => count,
    },
    actionsColumn((group) => [
      {
        label: text('groups.members_of', { name: group.name }),
        word: text('groups.members'),
        onPress: () => setMembers(group),
      },
      {
        label: text('groups.edit', { name: group.name }),
        icon: 'edit',
        isDisabled: group.is_locked,
        onPress: () => setEdited(group),
      },
      {
        label: text('groups.delete_name', { name: group.name }),
        icon: 'trash',
        isDisabled: group.is_locked || group.is_shipped,
        onPress: () => remove(group),
      },
    ]),
  ]
  return (
    <Page
      title={text('groups.title')}
      about={text('groups.about')}
      actions={
        <Button kind="primary" icon="plus" onClick={() => setEdited('new')}>
          {text('groups.create')}
        </Button>
      }
    >
      <div>
        <Table
          label={text('groups.title')}
          columns={columns}
          query={query}
          rows={query.rows}
          keyOf={({ id }) => id}
          empty={
            <Empty icon="groups" title={text('groups.none')}>
              {text('groups.about')}
            </Empty>
          }
        />
        <Pager {...query.pager} />
      </div>
      {edited !== null && (
        <GroupForm
          group={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
          onSaved={() => {
            setEdited(null)
            query.reload()
          }}
        />
      )}
      {members !== null && (
        <Members
          group={members}
          onClose={() => {
            setMembers(null)
            query.reload()
          }}
        />
      )}
    </Page>
  )
}
