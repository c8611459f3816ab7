import { useState } from 'preact/hooks'
import { text } from '../../texts/texts.ts'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Folders } from './folder-tree.tsx'
import { type FileNode, moveNode } from './nodes.ts'

/** Moves nodes into a folder that is chosen in a tree. */
export function MoveDialog({
  nodes,
  onMoved,
  onClose,
}: {
  nodes: readonly FileNode[]
  onMoved: () => void
  onClose: () => void
}) {
  const [target, setTarget] = useState<string | null>(null)
  const [first] = nodes
  const submit = async () => {
    for (const node of nodes) await moveNode(node, target)
    onMoved()
  }
  return (
    <FormDialog
      title={
        nodes.length === 1 && first !== undefined
          ? text('files.move_title', { name: first.name })
          : text('files.move_many_title', { count: nodes.length })
      }
      submit={text('files.move_here')}
      onSubmit={submit}
      onClose={onClose}
    >
      <p class="muted">{text('files.move_hint')}</p>
      <nav class="tree picker" aria-label={text('files.folders')}>
        <div class="tree-row">
          <button
            type="button"
            class="tree-name"
            aria-current={target === null ? 'true' : undefined}
            onClick={() => setTarget(null)}
          >
            <Icon name="files" size={16} />
            {text('files.mine')}
          </button>
        </div>
        <Folders scope="mine" folderId={null} selected={target} onSelect={setTarget} />
        <h3>{text('files.shared')}</h3>
        <Folders scope="shared_with_me" folderId={null} selected={target} onSelect={setTarget} />
      </nav>
    </FormDialog>
  )
}
