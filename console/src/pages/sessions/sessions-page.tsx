import { call } from '../../api/call.ts'
import type { LoginSession } from '../../api/generated/types.ts'
import { logOut } from '../../session/session.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Empty } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { announceFault, perform } from '../../ui/toasts.tsx'
import { browserName } from './browser-name.ts'

/** Where the user is logged in. */
export function SessionsPage() {
  const query = usePaged<LoginSession>(
    (page, signal) => call('GET /v1/sessions', { query: page, signal }),
    'sessions',
  )
  const end = async ({ id, user_agent: agent }: LoginSession) => {
    await perform(
      () => call('DELETE /v1/sessions/{session_id}', { path: { session_id: id } }),
      text('sessions.ended', { browser: browserName(agent) }),
    )
    query.reload()
  }
  const endAll = async () => {
    const isSure = await confirm({
      title: text('sessions.end_all_title'),
      consequence: text('sessions.end_all_hint'),
      action: text('sessions.end_all'),
      isDangerous: true,
    })
    if (!isSure) return
    try {
      await call('DELETE /v1/sessions')
      await logOut()
    } catch (error) {
      announceFault(error)
    }
  }
  const columns: readonly Column<LoginSession>[] = [
    {
      name: 'browser',
      label: text('sessions.browser'),
      cell: ({ user_agent: agent, current }) => (
        <span class="row" title={agent}>
          <strong>{browserName(agent)}</strong>
          {current && <span class="tag">{text('sessions.current')}</span>}
        </span>
      ),
    },
    {
      name: 'method',
      label: text('sessions.method'),
      cell: ({ method }) => text(`sessions.method.${method}`),
    },
    {
      name: 'created',
      label: text('sessions.created'),
      cell: ({ created_at: at }) => <span class="nowrap">{format.time(at)}</span>,
    },
    {
      name: 'used',
      label: text('sessions.used'),
      cell: ({ last_used_at: at }) => <span class="nowrap">{format.time(at)}</span>,
    },
    {
      name: 'expires',
      label: text('sessions.expires'),
      cell: ({ expires_at: at }) => <span class="nowrap">{format.time(at)}</span>,
    },
    actionsColumn((session) => [
      session.current
        ? { label: text('app.logout'), word: text('app.logout'), onPress: logOut }
        : {
            label: text('sessions.end_name', { browser: browserName(session.user_agent) }),
            word: text('sessions.end'),
            onPress: () => end(session),
          },
    ]),
  ]
  return (
    <Page
      title={text('sessions.title')}
      about={text('sessions.about')}
      actions={
        <Button kind="danger" icon="leave" onClick={() => void endAll()}>
          {text('sessions.end_all')}
        </Button>
      }
    >
      <div>
        <Table
          label={text('sessions.title')}
          columns={columns}
          query={query}
          rows={query.rows}
          keyOf={({ id }) => id}
          empty={
            <Empty icon="screen" title={text('sessions.none')}>
              {text('sessions.none_hint')}
            </Empty>
          }
        />
        <Pager {...query.pager} />
      </div>
    </Page>
  )
}
