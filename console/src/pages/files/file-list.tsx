import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { href } from '../../shell/router.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import type { Paged } from '../../ui/paged.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { announce, announceFault, perform } from '../../ui/toasts.tsx'
import { FileDialog, JoinCollection } from './file-dialog.tsx'
import { MoveDialog } from './move-dialog.tsx'
import { NameDialog } from './name-dialog.tsx'
import { deleteNode, type FileNode, isAtLeast, isFolder, renameNode } from './nodes.ts'
import { RetrievalState } from './retrieval-status.tsx'
import { ShareDialog } from './share-list.tsx'
import { fileShares, folderShares } from './share-source.ts'
import { download } from './transfer.ts'

type Shown =
  | { readonly dialog: 'details' | 'share' | 'rename'; readonly node: FileNode }
  | { readonly dialog: 'move' | 'join'; readonly nodes: readonly FileNode[] }

/** Files and folders with everything that can be done with them. */
export function FileList({
  query,
  isShared,
  empty,
}: {
  query: Paged<FileNode>
  isShared: boolean
  empty: ComponentChildren
}) {
  const [shown, setShown] = useState<Shown | null>(null)
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set())
  const rows = query.rows
  // A mark counts while its row is shown.
  const chosen = (rows ?? []).filter(({ id }) => marked.has(id))
  const change = () => {
    setShown(null)
    setMarked(new Set())
    query.reload()
  }
  const mark = (id: string, isMarked: boolean) => {
    setMarked((before) => {
      const next = new Set(before)
      if (isMarked) next.add(id)
      else next.delete(id)
      return next
    })
  }
  const columns: readonly Column<FileNode>[] = [
    {
      name: 'mark',
      label: text('files.mark'),
      head: (
        <input
          type="checkbox"
          aria-label={text('files.mark_all')}
          checked={chosen.length > 0 && chosen.length === rows?.length}
          onChange={({ currentTarget: { checked } }) =>
            setMarked(new Set(checked ? rows?.map(({ id }) => id) : []))
          }
        />
      ),
      cell: ({ id, name }) => (
        <input
          type="checkbox"
          aria-label={text('files.mark_name', { name })}
          checked={marked.has(id)}
          onChange={({ currentTarget: { checked } }) => mark(id, checked)}
        />
      ),
    },
    {
      name: 'name',
      label: text('files.name'),
      cell: (node) => (
        <NodeName node={node} onDetails={() => setShown({ dialog: 'details', node })} />
      ),
    },
    {
      name: 'status',
      label: text('files.search_state'),
      cell: (node) => (isFolder(node) ? null : <RetrievalState file={node} />),
    },
    {
      name: 'size',
      label: text('files.size'),
      align: 'right',
      cell: (node) => (
        <span class="nowrap">{isFolder(node) ? childrenText(node) : format.bytes(node.bytes)}</span>
      ),
    },
    ...(isShared ? [ownerColumn()] : []),
    {
      name: 'updated',
      label: text('files.updated'),
      cell: ({ updated_at: at }) => (
        <span class="nowrap" title={format.time(at)}>
          {format.date(at)}
        </span>
      ),
    },
    actionsColumn((node) => [
      !isFolder(node) && {
        label: text('files.download_name', { name: node.name }),
        icon: 'download',
        onPress: () => download(node.id, node.name).catch(announceFault),
      },
      isAtLeast(node.my_role, 'manager') && {
        label: text('files.share_name', { name: node.name }),
        icon: 'groups',
        onPress: () => setShown({ dialog: 'share', node }),
      },
      isAtLeast(node.my_role, 'editor') && {
        label: text('files.rename_name', { name: node.name }),
        icon: 'edit',
        onPress: () => setShown({ dialog: 'rename', node }),
      },
      isAtLeast(node.my_role, 'editor') && {
        label: text('files.move_name', { name: node.name }),
        icon: 'move',
        onPress: () => setShown({ dialog: 'move', nodes: [node] }),
      },
      isAtLeast(node.my_role, 'editor') && {
        label: text('files.delete_name', { name: node.name }),
        icon: 'trash',
        onPress: async () => {
          if (await deleteNodes([node])) change()
        },
      },
    ]),
  ]
  return (
    <div class="stack tight">
      <Table
        label={text('files.title')}
        columns={columns}
        query={query}
        rows={rows}
        keyOf={({ id }) => id}
        empty={empty}
      />
      <Pager {...query.pager} />
      {chosen.length > 0 && (
        <section class="row selection" aria-label={text('files.selection')}>
          <strong class="grow">{text('files.selected', { count: chosen.length })}</strong>
          <Button size="small" onClick={() => setShown({ dialog: 'move', nodes: chosen })}>
            {text('files.move')}
          </Button>
          <Button
            size="small"
            disabled={chosen.every(isFolder)}
            onClick={() => setShown({ dialog: 'join', nodes: chosen })}
          >
            {text('files.join')}
          </Button>
          <Button
            size="small"
            kind="danger"
            onClick={async () => {
              if (await deleteNodes(chosen)) change()
            }}
          >
            {text('action.delete')}
          </Button>
        </section>
      )}
      {shown !== null && <Dialogs shown={shown} onChange={change} onClose={() => setShown(null)} />}
    </div>
  )
}

function ownerColumn(): Column<FileNode> {
  return {
    name: 'owner',
    label: text('files.owner'),
    cell: ({ owner: { id, name } }) => name ?? id,
  }
}

function childrenText({
  child_counts: { files, folders },
}: {
  child_counts: { files: number; folders: number }
}) {
  const count = files + folders
  return count === 1 ? text('files.child') : text('files.children', { count: format.number(count) })
}

function NodeName({ node, onDetails }: { node: FileNode; onDetails: () => void }) {
  return (
    <div class="node-name">
      <Icon name={isFolder(node) ? 'files' : 'audit'} />
      {isFolder(node) ? (
        <a href={href(`/files?folder=${node.id}`)}>{node.name}</a>
      ) : (
        <button type="button" class="link" onClick={onDetails}>
          {node.name}
        </button>
      )}
      {node.shared && <span class="tag">{text('files.is_shared')}</span>}
    </div>
  )
}

function Dialogs({
  shown,
  onChange,
  onClose,
}: {
  shown: Shown
  onChange: () => void
  onClose: () => void
}) {
  if ('nodes' in shown) {
    if (shown.dialog === 'move') {
      return <MoveDialog nodes={shown.nodes} onMoved={onChange} onClose={onClose} />
    }
    const files = shown.nodes.filter((node) => !isFolder(node))
    return (
      <Dialog title={text('files.join_many', { count: files.length })} onClose={onClose}>
        <JoinCollection files={files} onJoined={onChange} />
      </Dialog>
    )
  }
  const { node } = shown
  if (shown.dialog === 'details') {
    return <FileDialog id={node.id} name={node.name} onClose={onChange} />
  }
  if (shown.dialog === 'share') {
    return (
      <ShareDialog
        source={isFolder(node) ? folderShares(node) : fileShares(node)}
        onClose={onChange}
      />
    )
  }
  return (
    <NameDialog
      title={text('files.rename_title', { name: node.name })}
      label={text('files.new_name')}
      submit={text('files.rename')}
      initial={node.name}
      onName={async (name) => {
        await renameNode(node, name)
        announce(text('files.renamed', { name }))
        onChange()
      }}
      onClose={onClose}
    />
  )
}

/** False if the person decided otherwise. */
async function deleteNodes(nodes: readonly FileNode[]): Promise<boolean> {
  const [first] = nodes
  if (first === undefined) return false
  const name = nodes.length === 1 ? first.name : text('files.selected', { count: nodes.length })
  const isSure = await confirm({
    title: text('files.delete_title', { name }),
    consequence: text(nodes.some(isFolder) ? 'files.delete_folder_hint' : 'files.delete_hint'),
    action: text('action.delete'),
    isDangerous: true,
  })
  if (!isSure) return false
  await perform(
    async () => {
      for (const node of nodes) await deleteNode(node)
    },
    text('files.deleted', { name }),
  )
  return true
}
