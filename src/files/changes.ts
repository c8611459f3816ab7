import type { Transaction } from '#jobs/jobs.ts'
import type { FileChange, FileHooks } from './files.ts'

/** One change tells of so many files at most. */
const filesPerChange = 1_000

/** Tells what has happened to those of the nodes that are files. */
export async function notifyInBatches(
  { changed }: Pick<FileHooks, 'changed'>,
  transaction: Transaction,
  kind: FileChange['kind'],
  nodes: readonly { id: string; kind: 'file' | 'folder' }[],
): Promise<void> {
  const ids = nodes.filter((node) => node.kind === 'file').map(({ id }) => id)
  for (let at = 0; at < ids.length; at += filesPerChange) {
    await changed(transaction, { kind, fileIds: ids.slice(at, at + filesPerChange) })
  }
}
