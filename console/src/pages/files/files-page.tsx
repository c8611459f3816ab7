import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { href, navigate, place } from '../../shell/router.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { useDrop } from '../../ui/drop.ts'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Icon, type IconName } from '../../ui/icon.tsx'
import { Empty, Fault } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { useQuery } from '../../ui/query.ts'
import { announce } from '../../ui/toasts.tsx'
import { enqueueDropped } from './dropped.ts'
import { FileList } from './file-list.tsx'
import { Folders } from './folder-tree.tsx'
import { NameDialog } from './name-dialog.tsx'
import { createFolder, type FileNode, folderRound, isAtLeast, isFolder } from './nodes.ts'
import { isInProgress, type RetrievalStatus, retrievalStatuses } from './retrieval-status.tsx'
import { Trash } from './trash.tsx'
import { UploadPanel } from './upload-panel.tsx'
import { enqueue, uploadedCount } from './upload-queue.ts'

type View = 'mine' | 'shared' | 'trash'

const views: readonly { view: View; icon: IconName }[] = [
  { view: 'mine', icon: 'files' },
  { view: 'shared', icon: 'groups' },
  { view: 'trash', icon: 'trash' },
]
const everyMs = 2_000

export function FilesPage() {
  const { query: address } = place.value
  const view = views.find((one) => one.view === address.get('view'))?.view ?? 'mine'
  const folderId = address.get('folder')
  const folder = useQuery(
    async (signal) =>
      folderId === null
        ? null
        : call('GET /v1/folders/{folder_id}', { path: { folder_id: folderId }, signal }),
    `folder ${folderId} ${folderRound.value}`,
  )
  const [isNaming, setNaming] = useState(false)
  const picker = useRef<HTMLInputElement>(null)
  const canAdd =
    folderId === null
      ? view === 'mine'
      : folder.data != null && isAtLeast(folder.data.my_role, 'editor')

  const upload = (files: readonly File[]) => enqueue(files, { folderId })
  const drop = useDrop(canAdd, (transfer) => enqueueDropped(transfer, { folderId }))
  return (
    <Page
      title={text('files.title')}
      about={text('files.about')}
      actions={
        <>
          <Button icon="plus" disabled={!canAdd} onClick={() => setNaming(true)}>
            {text('files.new_folder')}
          </Button>
          <Button
            kind="primary"
            icon="upload"
            disabled={!canAdd}
            onClick={() => picker.current?.click()}
          >
            {text('files.upload')}
          </Button>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label={text('files.upload')}
            onChange={({ currentTarget }) => {
              upload([...(currentTarget.files ?? [])])
              currentTarget.value = ''
            }}
          />
        </>
      }
    >
      <UploadPanel />
      <div class="explorer">
        <Sidebar view={view} folderId={folderId} />
        <section class="drop stack tight" data-over={drop.isOver} {...drop.handlers}>
          {view !== 'trash' && <Path view={view} folder={folder.data ?? null} />}
          {folder.error !== undefined && <Fault error={folder.error} onRetry={folder.reload} />}
          {view === 'trash' ? (
            <Trash />
          ) : (
            <Listing key={view} view={view} folderId={folderId} canAdd={canAdd} />
          )}
        </section>
      </div>
      {isNaming && (
        <NameDialog
          title={text('files.new_folder')}
          label={text('files.name')}
          submit={text('action.create')}
          onName={async (name) => {
            await createFolder(name, folderId)
            announce(text('files.folder_created', { name }))
            setNaming(false)
          }}
          onClose={() => setNaming(false)}
        />
      )}
    </Page>
  )
}

function Sidebar({ view, folderId }: { view: View; folderId: string | null }) {
  return (
    <nav class="tree" aria-label={text('files.folders')}>
      <ul>
        {views.map(({ view: one, icon }) => (
          <li key={one}>
            <div class="tree-row">
              <a
                class="tree-name"
                href={href(one === 'mine' ? '/files' : `/files?view=${one}`)}
                aria-current={one === view && folderId === null ? 'page' : undefined}
              >
                <Icon name={icon} size={16} />
                {text(`files.${one}`)}
              </a>
            </div>
            {one !== 'trash' && (
              <Folders
                scope={one === 'mine' ? 'mine' : 'shared_with_me'}
                folderId={null}
                selected={folderId}
                onSelect={(id) =>
                  navigate(
                    one === 'mine' ? `/files?folder=${id}` : `/files?view=shared&folder=${id}`,
                  )
                }
              />
            )}
          </li>
        ))}
      </ul>
    </nav>
  )
}

type PathFolder = { id: string; name: string; path: { id: string; name: string }[] }

/** Where one is, from the top level. */
function Path({ view, folder }: { view: View; folder: PathFolder | null }) {
  if (folder === null) return null
  const suffix = view === 'shared' ? 'view=shared&' : ''
  return (
    <nav aria-label={text('files.path')}>
      <ol class="path">
        <li>
          <a href={href(view === 'mine' ? '/files' : '/files?view=shared')}>
            {text(`files.${view}`)}
          </a>
        </li>
        {folder.path.map(({ id, name }) => (
          <li key={id}>
            <a href={href(`/files?${suffix}folder=${id}`)}>{name}</a>
          </li>
        ))}
        <li aria-current="location">{folder.name}</li>
      </ol>
    </nav>
  )
}

function Listing({
  view,
  folderId,
  canAdd,
}: {
  view: View
  folderId: string | null
  canAdd: boolean
}) {
  const [search, setSearch] = useState('')
  const [status, setStatus] = useState<RetrievalStatus | ''>('')
  const searched = search.trim()
  const isSearch = searched !== '' || status !== ''
  const scope = view === 'mine' ? 'mine' : 'shared_with_me'
  const query = usePaged<FileNode>(
    ({ after, limit }, signal) => {
      const page = { limit, ...(after === undefined ? {} : { cursor: after }) }
      const place = folderId === null ? ({ scope } as const) : { folder_id: folderId }
      return isSearch
        ? call('GET /v1/files/search', {
            signal,
            query: {
              ...page,
              ...place,
              q: searched,
              ...(status === '' ? {} : { retrieval_status: status }),
            },
          })
        : call('GET /v1/files/children', { signal, query: { ...page, ...place } })
    },
    `${view} ${folderId} ${searched} ${status}`,
    {
      everyMs: ({ data }) =>
        data.some((node) => !isFolder(node) && isInProgress(node)) ? everyMs : null,
    },
  )
  const round = `${uploadedCount.value} ${folderRound.value}`
  const seen = useRef(round)
  useEffect(() => {
    if (seen.current === round) return
    seen.current = round
    query.reload()
  }, [round])
  return (
    <>
      <div class="row between filters">
        <div class="grow">
          <TextField
            type="search"
            label={text('files.search')}
            value={search}
            onValue={setSearch}
          />
        </div>
        <SelectField
          label={text('files.search_state')}
          value={status}
          onValue={(value) => setStatus(value as RetrievalStatus | '')}
          options={[
            { value: '', label: text('files.status.any') },
            ...retrievalStatuses.map((value) => ({ value, label: text(`files.status.${value}`) })),
          ]}
        />
      </div>
      <FileList
        query={query}
        isShared={view === 'shared'}
        empty={
          isSearch ? (
            <Empty icon="files" title={text('files.none_found')}>
              {text('files.none_found_hint')}
            </Empty>
          ) : view === 'shared' && folderId === null ? (
            <Empty icon="groups" title={text('files.shared_none')}>
              {text('files.shared_hint')}
            </Empty>
          ) : (
            <Empty icon="files" title={text('files.none')}>
              {text(canAdd ? 'files.none_hint' : 'files.none_read_only')}
            </Empty>
          )
        }
      />
    </>
  )
}
