import { useEffect, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Folder } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useQuery } from '../../ui/query.ts'
import { folderRound, isFolder } from './nodes.ts'

type Scope = 'mine' | 'shared_with_me'

const foldersPerPage = 100

type Selection = {
  readonly selected: string | null
  readonly onSelect: (folderId: string) => void
}

/** The folders below one, loaded when it is opened. */
export function Folders({
  scope,
  folderId,
  ...selection
}: { scope: Scope; folderId: string | null } & Selection) {
  const [pages, setPages] = useState(1)
  const query = useQuery(
    (signal) => loadFolders(scope, folderId, pages, signal),
    `${scope} ${folderId} ${pages} ${folderRound.value}`,
  )
  const [known, setKnown] = useState(query.data)
  useEffect(() => {
    if (query.data !== undefined) setKnown(query.data)
  }, [query.data])
  if (known === undefined) {
    return query.error === undefined ? null : (
      <Button size="small" kind="quiet" icon="refresh" onClick={query.reload}>
        {text('action.retry')}
      </Button>
    )
  }
  return (
    <ul>
      {known.folders.map((folder) => (
        <FolderItem key={folder.id} folder={folder} {...selection} />
      ))}
      {known.hasMore && (
        <li>
          <Button size="small" kind="quiet" onClick={() => setPages(pages + 1)}>
            {text('files.more_folders')}
          </Button>
        </li>
      )}
    </ul>
  )
}

function FolderItem({ folder, selected, onSelect }: { folder: Folder } & Selection) {
  const [isOpen, setOpen] = useState(false)
  const { id, name, child_counts: children } = folder
  return (
    <li>
      <div class="tree-row">
        <button
          type="button"
          class="tree-toggle"
          aria-expanded={isOpen}
          aria-label={text(isOpen ? 'files.close_folder' : 'files.open_folder', { name })}
          disabled={children.folders === 0}
          onClick={() => setOpen(!isOpen)}
        >
          {children.folders > 0 && <Icon name="chevron" size={14} />}
        </button>
        <button
          type="button"
          class="tree-name"
          aria-current={id === selected ? 'true' : undefined}
          onClick={() => onSelect(id)}
        >
          <Icon name="files" size={16} />
          <span class="truncate">{name}</span>
        </button>
      </div>
      {isOpen && <Folders scope="mine" folderId={id} selected={selected} onSelect={onSelect} />}
    </li>
  )
}

async function loadFolders(
  scope: Scope,
  folderId: string | null,
  pages: number,
  signal: AbortSignal,
): Promise<{ folders: Folder[]; hasMore: boolean }> {
  const folders: Folder[] = []
  let cursor: string | null = null
  for (let page = 0; page < pages; page++) {
    const answer: { data: ({ object: 'file' | 'folder' } & object)[]; next: string | null } =
      await call('GET /v1/files/children', {
        signal,
        query: {
          type: 'folder',
          limit: foldersPerPage,
          ...(folderId === null ? { scope } : { folder_id: folderId }),
          ...(cursor === null ? {} : { cursor }),
        },
      })
    folders.push(...answer.data.filter(isFolder))
    cursor = answer.next
    if (cursor === null) break
  }
  return { folders, hasMore: cursor !== null }
}
