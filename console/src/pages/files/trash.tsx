import type { ResponseOf } from '../../api/call.ts'
import { call } from '../../api/call.ts'
import { format, text } from '../../texts/texts.ts'
import { confirm } from '../../ui/confirm.tsx'
import { Empty } from '../../ui/notice.tsx'
import { useQuery } from '../../ui/query.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'
import { folderRound } from './nodes.ts'

type Trashed = ResponseOf<'GET /v1/files/trash'>['data'][number]

const trashMax = 100

/** What was deleted, until it is deleted for good. */
export function Trash() {
  const query = useQuery(
    (signal) => call('GET /v1/files/trash', { query: { limit: trashMax }, signal }),
    'trash',
  )
  const restore = async ({ id, object, name }: Trashed) => {
    const body = { on_conflict: 'rename' } as const
    await perform(
      () =>
        object === 'file'
          ? call('POST /v1/files/{file_id}/restore', { path: { file_id: id }, body })
          : call('POST /v1/folders/{folder_id}/restore', { path: { folder_id: id }, body }),
      text('files.restored', { name }),
    )
    folderRound.value += 1
    query.reload()
  }
  const remove = async ({ id, name }: Trashed) => {
    const isSure = await confirm({
      title: text('files.purge_title', { name }),
      consequence: text('files.purge_hint'),
      action: text('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      () =>
        call('DELETE /v1/files/{file_id}', { path: { file_id: id }, query: { permanent: true } }),
      text('files.deleted', { name }),
    )
    query.reload()
  }
  const columns: readonly Column<Trashed>[] = [
    { name: 'name', label: text('files.name'), cell: ({ name }) => name },
    {
      name: 'kind',
      label: text('files.kind'),
      cell: ({ object }) => text(`files.kind.${object}`),
    },
    {
      name: 'at',
      label: text('files.trashed_at'),
      cell: ({ trashed_at: at }) => <span class="nowrap">{format.time(at)}</span>,
    },
    actionsColumn((node) => [
      {
        label: text('files.restore_name', { name: node.name }),
        word: text('files.restore'),
        onPress: () => restore(node),
      },
      node.object === 'file' && {
        label: text('files.purge_name', { name: node.name }),
        icon: 'trash',
        onPress: () => remove(node),
      },
    ]),
  ]
  return (
    <Table
      label={text('files.trash')}
      columns={columns}
      query={query}
      rows={query.data?.data}
      keyOf={({ id }) => id}
      empty={
        <Empty icon="trash" title={text('files.trash_none')}>
          {text('files.trash_hint')}
        </Empty>
      }
    />
  )
}
