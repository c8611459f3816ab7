import { call } from '../../api/call.ts'
import type { InstalledModel } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { confirm } from '../../ui/confirm.tsx'
import { Empty } from '../../ui/notice.tsx'
import { useQuery } from '../../ui/query.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'

/** The operation on a model whose name has one step, or two: `org/name`. */
type ModelPath = { name: string } | { name: string; repository: string }

function pathOf(name: string): ModelPath {
  const [first = '', second] = name.split('/')
  return second === undefined ? { name: first } : { name: first, repository: second }
}

export function Installed({ round, onChange }: { round: number; onChange: () => void }) {
  const query = useQuery(
    (signal) => call('GET /v1/model-installer/models', { signal }),
    `installed ${round}`,
  )
  const remove = async (name: string) => {
    const isSure = await confirm({
      title: text('installer.delete_title', { model: name }),
      consequence: text('installer.delete_consequence'),
      action: text('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    const path = pathOf(name)
    await perform(
      () =>
        'repository' in path
          ? call('DELETE /v1/model-installer/models/{name}/{repository}', { path })
          : call('DELETE /v1/model-installer/models/{name}', { path }),
      text('installer.deleted', { model: name }),
    )
    onChange()
  }
  const verify = async (name: string) => {
    const path = pathOf(name)
    await perform(
      () =>
        'repository' in path
          ? call('POST /v1/model-installer/models/{name}/{repository}/verify', { path })
          : call('POST /v1/model-installer/models/{name}/verify', { path }),
      text('installer.verifying', { model: name }),
    )
    onChange()
  }
  const columns: readonly Column<InstalledModel>[] = [
    {
      name: 'name',
      label: text('installer.column_model'),
      cell: ({ name, source }) => (
        <div>
          <strong>{name}</strong>
          <div class="small muted">{source}</div>
        </div>
      ),
    },
    {
      name: 'size',
      label: text('installer.size'),
      align: 'right',
      cell: ({ bytes }) => format.bytes(bytes),
    },
    {
      name: 'verified',
      label: text('installer.verified'),
      cell: ({ verified }) => (
        <span class={`status ${verified ? 'good' : 'warn'}`}>
          {text(verified ? 'installer.verified_yes' : 'installer.verified_no')}
        </span>
      ),
    },
    {
      name: 'at',
      label: text('installer.installed_at'),
      cell: ({ installed_at: at }) => <span class="nowrap">{format.time(at)}</span>,
    },
    {
      name: 'users',
      label: text('installer.in_use'),
      cell: ({ in_use_by: users }) =>
        users.length === 0 ? <span class="muted">–</span> : users.join(' '),
    },
    actionsColumn(({ name, in_use_by: users }) => [
      {
        label: text('installer.verify_name', { model: name }),
        word: text('installer.verify'),
        onPress: () => verify(name),
      },
      {
        label: text('installer.delete_name', { model: name }),
        icon: 'trash',
        isDisabled: users.length > 0,
        onPress: () => remove(name),
      },
    ]),
  ]
  return (
    <section class="stack tight">
      <h2>{text('installer.installed')}</h2>
      <Table
        label={text('installer.installed')}
        columns={columns}
        query={query}
        rows={query.data?.data}
        keyOf={({ name }) => name}
        empty={
          <Empty icon="download" title={text('installer.none')}>
            {text('installer.none_hint')}
          </Empty>
        }
      />
    </section>
  )
}
