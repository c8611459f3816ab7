import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { User } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Empty } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { AccountForm } from './account-form.tsx'
import { UserDialog } from './user-dialog.tsx'

type Kind = 'all' | User['kind']

const kinds: readonly Kind[] = ['all', 'user', 'service']

export function UsersPage() {
  const [kind, setKind] = useState<Kind>('all')
  const [search, setSearch] = useState('')
  const [shown, setShown] = useState<User | null>(null)
  const [isCreating, setCreating] = useState(false)
  const searched = search.trim()
  const query = usePaged(
    (page, signal) =>
      call('GET /v1/users', {
        signal,
        query: {
          ...page,
          ...(kind === 'all' ? {} : { kind }),
          ...(searched === '' ? {} : { q: searched }),
        },
      }),
    `users ${kind} ${searched}`,
  )
  const columns: readonly Column<User>[] = [
    {
      name: 'name',
      label: text('users.name'),
      cell: ({ name, subject }) => (
        <div>
          <strong>{name ?? subject}</strong>
          {name !== null && <div class="small muted mono">{subject}</div>}
        </div>
      ),
    },
    { name: 'kind', label: text('users.kind'), cell: (user) => text(`users.kind.${user.kind}`) },
    {
      name: 'state',
      label: text('users.state'),
      cell: ({ disabled_at: at }) => (
        <span class={`status ${at === null ? 'good' : 'bad'}`}>
          {text(at === null ? 'users.enabled' : 'users.disabled')}
        </span>
      ),
    },
    {
      name: 'seen',
      label: text('users.seen'),
      cell: ({ last_seen_at: at }) => (
        <span class="nowrap">{at === null ? text('time.never') : format.time(at)}</span>
      ),
    },
    actionsColumn((user) => [
      {
        label: text('users.manage_name', { name: user.name ?? user.subject }),
        word: text('users.manage'),
        onPress: () => setShown(user),
      },
    ]),
  ]
  return (
    <Page
      title={text('users.title')}
      about={text('users.about')}
      actions={
        <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
          {text('users.create_account')}
        </Button>
      }
    >
      <div class="stack tight">
        <div class="row between filters">
          <div class="narrow grow">
            <TextField
              type="search"
              label={text('users.search')}
              value={search}
              onValue={setSearch}
            />
          </div>
          <Segments
            label={text('users.kind')}
            choices={kinds.map((name) => ({ name, label: text(`users.kinds.${name}`) }))}
            selected={kind}
            onSelect={setKind}
          />
        </div>
        <Table
          label={text('users.title')}
          columns={columns}
          query={query}
          rows={query.rows}
          keyOf={({ id }) => id}
          empty={
            <Empty icon="groups" title={text('users.none_found')}>
              {text('users.none_hint')}
            </Empty>
          }
        />
        <Pager {...query.pager} />
      </div>
      {isCreating && (
        <AccountForm
          onClose={() => setCreating(false)}
          onCreated={(account) => {
            setCreating(false)
            query.reload()
            setShown(account)
          }}
        />
      )}
      {shown !== null && (
        <UserDialog
          user={shown}
          onChange={query.reload}
          onClose={() => {
            setShown(null)
            query.reload()
          }}
        />
      )}
    </Page>
  )
}
