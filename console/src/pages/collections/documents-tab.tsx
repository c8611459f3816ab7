import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Collection, CollectionFile } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { useDrop } from '../../ui/drop.ts'
import { Empty } from '../../ui/notice.tsx'
import { usePaged } from '../../ui/paged.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'
import { enqueueDropped } from '../files/dropped.ts'
import { FileDialog } from '../files/file-dialog.tsx'
import { isAtLeast } from '../files/nodes.ts'
import { stageText } from '../files/retrieval-status.tsx'
import { UploadPanel } from '../files/upload-panel.tsx'
import { enqueue, uploadedCount } from '../files/upload-queue.ts'

const everyMs = 2_000

const levels: Readonly<Record<CollectionFile['status'], string>> = {
  in_progress: 'live',
  completed: 'good',
  failed: 'bad',
}

/** The files of a collection, with the way of each to `RAG Available`. */
export function DocumentsTab({
  collection,
  onChange,
}: {
  collection: Collection
  onChange: () => void
}) {
  const { id, my_role: role } = collection
  const [shown, setShown] = useState<CollectionFile | null>(null)
  const picker = useRef<HTMLInputElement>(null)
  const canEdit = isAtLeast(role, 'editor')
  const target = { folderId: null, collectionId: id }
  const drop = useDrop(canEdit, (transfer) => enqueueDropped(transfer, target))
  const query = usePaged<CollectionFile>(
    (page, signal) =>
      call('GET /v1/collections/{name}/files', { path: { name: id }, query: page, signal }),
    `documents ${id}`,
    {
      everyMs: ({ data }) => (data.some(({ status }) => status === 'in_progress') ? everyMs : null),
    },
  )
  const seen = useRef(uploadedCount.value)
  useEffect(() => {
    if (seen.current === uploadedCount.value) return
    seen.current = uploadedCount.value
    query.reload()
    onChange()
  }, [uploadedCount.value])
  const remove = async ({ file_id: fileId, filename }: CollectionFile) => {
    await perform(
      () =>
        call('DELETE /v1/collections/{name}/files/{file_id}', {
          path: { name: id, file_id: fileId },
        }),
      text('collections.removed', { name: filename }),
    )
    query.reload()
    onChange()
  }
  const reprocess = async ({ file_id: fileId, filename }: CollectionFile) => {
    await perform(
      () => call('POST /v1/files/{file_id}/reprocess', { path: { file_id: fileId } }),
      text('files.reprocessing', { name: filename }),
    )
    query.reload()
  }
  const columns: readonly Column<CollectionFile>[] = [
    {
      name: 'name',
      label: text('files.name'),
      cell: (file) => (
        <button type="button" class="link" onClick={() => setShown(file)}>
          {file.filename}
        </button>
      ),
    },
    { name: 'status', label: text('files.search_state'), cell: (file) => <State file={file} /> },
    {
      name: 'chunks',
      label: text('collections.passages'),
      align: 'right',
      cell: ({ chunks }) => format.number(chunks),
    },
    {
      name: 'size',
      label: text('files.size'),
      align: 'right',
      cell: ({ bytes }) => <span class="nowrap">{format.bytes(bytes)}</span>,
    },
    actionsColumn((file) => [
      canEdit &&
        file.status === 'failed' && {
          label: text('collections.reprocess_name', { name: file.filename }),
          icon: 'refresh',
          onPress: () => reprocess(file),
        },
      canEdit &&
        !file.followed && {
          label: text('collections.remove_name', { name: file.filename }),
          icon: 'trash',
          onPress: () => remove(file),
        },
    ]),
  ]
  return (
    <div class="stack drop" data-over={drop.isOver} {...drop.handlers}>
      {canEdit && (
        <div class="row">
          <Button icon="upload" onClick={() => picker.current?.click()}>
            {text('collections.upload')}
          </Button>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label={text('collections.upload')}
            onChange={({ currentTarget }) => {
              enqueue([...(currentTarget.files ?? [])], target)
              currentTarget.value = ''
            }}
          />
        </div>
      )}
      <UploadPanel />
      <div>
        <Table
          label={text('collections.documents')}
          columns={columns}
          query={query}
          rows={query.rows}
          keyOf={({ file_id: fileId }) => fileId}
          empty={
            <Empty icon="files" title={text('collections.no_documents')}>
              {text('collections.no_documents_hint')}
            </Empty>
          }
        />
        <Pager {...query.pager} />
      </div>
      {shown !== null && (
        <FileDialog
          id={shown.file_id}
          name={shown.filename}
          onClose={() => {
            setShown(null)
            query.reload()
          }}
        />
      )}
    </div>
  )
}

function State({ file: { status, stage, error } }: { file: CollectionFile }) {
  const label = {
    in_progress: 'files.status.Processing',
    completed: 'files.status.RAG Available',
    failed: 'files.status.Failed',
  } as const
  return (
    <div>
      <span class={`status ${levels[status]}`}>{text(label[status])}</span>
      {stage !== null && <div class="small muted">{stageText(stage)}</div>}
      {error !== null && <div class="small muted reason">{error.message}</div>}
    </div>
  )
}
