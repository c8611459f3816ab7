import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Agent } from '../../api/generated/types.ts'
import { href } from '../../shell/router.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Empty } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'
import { AgentForm } from './agent-form.tsx'

export function AgentsPage() {
  const [edited, setEdited] = useState<Agent | 'new' | null>(null)
  const query = usePaged<Agent>(
    (page, signal) => call('GET /v1/agents', { query: page, signal }),
    'agents',
  )
  const remove = async ({ id, name }: Agent) => {
    const isSure = await confirm({
      title: text('agents.delete_title', { name }),
      consequence: text('agents.delete_hint'),
      action: text('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      () => call('DELETE /v1/agents/{agent_id}', { path: { agent_id: id } }),
      text('agents.deleted', { name }),
    )
    query.reload()
  }
  const columns: readonly Column<Agent>[] = [
    {
      name: 'name',
      label: text('agents.name'),
      cell: ({ name, description, model_id: id }) => (
        <div class="anywhere">
          <strong>{name}</strong>
          {description !== null && <div class="small muted">{description}</div>}
          <code class="small muted">{id}</code>
        </div>
      ),
    },
    {
      name: 'model',
      label: text('agents.model'),
      cell: ({ model, status }) => (
        <div>
          <span>{model ?? '–'}</span>
          {status === 'model_unavailable' && (
            <div class="status bad small">{text('agents.model_unavailable')}</div>
          )}
        </div>
      ),
    },
    { name: 'uses', label: text('agents.uses'), cell: (agent) => <Uses agent={agent} /> },
    { name: 'sharing', label: text('agents.visibility'), cell: sharingText },
    {
      name: 'updated',
      label: text('files.updated'),
      cell: ({ updated_at: at }) => <span class="nowrap">{format.date(at)}</span>,
    },
    actionsColumn((agent) => [
      {
        label: text('models.try_name', { name: agent.name }),
        word: text('models.try'),
        href: href(`/playground?model=${encodeURIComponent(agent.model_id)}`),
      },
      agent.is_editable && {
        label: text('agents.edit', { name: agent.name }),
        icon: 'edit',
        onPress: () => setEdited(agent),
      },
      agent.is_editable && {
        label: text('agents.delete_name', { name: agent.name }),
        icon: 'trash',
        onPress: () => remove(agent),
      },
    ]),
  ]
  return (
    <Page
      title={text('agents.title')}
      about={text('agents.about')}
      actions={
        <Button kind="primary" icon="plus" onClick={() => setEdited('new')}>
          {text('agents.create')}
        </Button>
      }
    >
      <div>
        <Table
          label={text('agents.title')}
          columns={columns}
          query={query}
          rows={query.rows}
          keyOf={({ id }) => id}
          empty={
            <Empty icon="agent" title={text('agents.none')}>
              {text('agents.none_hint')}
            </Empty>
          }
        />
        <Pager {...query.pager} />
      </div>
      {edited !== null && (
        <AgentForm
          agent={edited === 'new' ? null : edited}
          onSaved={() => {
            setEdited(null)
            query.reload()
          }}
          onClose={() => setEdited(null)}
        />
      )}
    </Page>
  )
}

/** What an agent adds to its model; unknown to those who may not change it. */
function Uses({ agent: { tools = [], collections = [] } }: { agent: Agent }) {
  const names = [
    ...collections.map(({ id, name }) => name ?? id),
    ...tools.map((tool) => (tool.type === 'function' ? tool.name : tool.server_label)),
  ]
  if (names.length === 0) return <span class="muted">–</span>
  return (
    <span class="row">
      {names.map((name) => (
        <span key={name} class="tag">
          {name}
        </span>
      ))}
    </span>
  )
}

function sharingText({ visibility, is_owner: isOwner }: Agent): string {
  if (visibility === undefined) return text('agents.shared_with_you')
  if ('groups' in visibility) return visibility.groups.join(', ')
  if ('users' in visibility) return visibility.users.join(', ')
  return text(
    isOwner || visibility.kind === 'everyone'
      ? `agents.visibility.${visibility.kind}`
      : 'agents.others',
  )
}
