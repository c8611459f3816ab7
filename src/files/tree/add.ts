import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#db/client.ts'
import type { NewContent, NewFile, OnConflict } from '#files/files.ts'
import { duplicateKey, nameKey, parseName } from '#files/names.ts'
import type { FileRecord } from '#files/record.ts'
import { readRecord } from '#files/record-store.ts'
import type { TreeDeps } from '#files/tree.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { StoredContent } from '#storage/storage.ts'
import {
  findDestination,
  findNamed,
  freeName,
  type NodeKind,
  nameConflict,
  nodeNotFound,
  requireDepth,
  requireNode,
  requireNodeQuota,
} from './checks.ts'
import {
  copyFile,
  findNode,
  insertFile,
  insertNode,
  storedBytesBeside,
  type TreeLocation,
  touchNode,
  writeContent,
} from './store.ts'

type NodeChange = { transaction: Transaction; principal: RequestPrincipal; id: string }

type Placement = { readonly folderId: string | null; readonly onConflict: OnConflict }

export function createAdditions(deps: TreeDeps) {
  const { store, storage, hooks, limits, now, storedBytesMax = () => null } = deps
  /** Null adds to the top level of the principal's own tree. */
  function inDestination<T>(
    { principal, folderId }: { principal: RequestPrincipal; folderId: string | null },
    work: (transaction: Transaction, location: TreeLocation & { depth: number }) => Promise<T>,
  ): Promise<T> {
    const owners = folderId === null ? [principal.userId] : []
    return store.inTrees({ nodes: [folderId], owners }, async (transaction) =>
      work(transaction, await findDestination(transaction, principal, folderId)),
    )
  }

  async function addNode(
    { transaction, principal }: Omit<NodeChange, 'id'>,
    location: TreeLocation,
    node: { name: string; kind: NodeKind; onConflict: OnConflict },
  ): Promise<string> {
    const id = Bun.randomUUIDv7()
    const isDuplicate =
      node.onConflict === 'allow' &&
      (await findNamed(transaction, location, node.name, null)) !== undefined
    const name = isDuplicate
      ? node.name
      : await freeName(transaction, location, { ...node, exceptId: null })
    await requireNodeQuota(transaction, location, { added: 1, perOwnerMax: limits.perOwnerMax })
    await insertNode(transaction, {
      id,
      ownerId: location.ownerId,
      parentId: location.parentId,
      kind: node.kind,
      createdBy: principal.userId,
      name,
      key: isDuplicate ? duplicateKey(name, id) : nameKey(name),
      now: now(),
    })
    return id
  }

  const recordAddition = (
    { transaction, principal, id }: NodeChange,
    { parentId }: TreeLocation,
    node: { kind: NodeKind; name: string; copiedFrom?: string },
  ) => {
    const { kind, name, copiedFrom } = node
    const copied = copiedFrom === undefined ? {} : { copied_from: copiedFrom }
    const after = { name, folder_id: parentId, ...copied }
    return recordChange(transaction, principal, { kind, id, action: 'create', after, at: now() })
  }

  /** The sweep may have removed unused content between the upload and this call. */
  async function keepContent({ content }: NewContent): Promise<void> {
    await store.keepContent(content, now())
    if (await storage.has(content.sha256)) return
    throw new AppError('service_unavailable', 'The content was not stored; send it again.', {
      retryAfterS: 0,
    })
  }

  async function notifyContent(change: NodeChange, { collections = [] }: Partial<NewFile> = {}) {
    const { transaction, principal, id } = change
    const bytesMax = storedBytesMax(principal)
    if (bytesMax !== null) await requireStoredBytes(transaction, id, bytesMax)
    await hooks.changed(transaction, { kind: 'content', fileIds: [id] })
    if (collections.length > 0) {
      await hooks.joinCollections(transaction, principal, id, collections)
    }
    return readFile(change)
  }

  async function replace(change: NodeChange, file: NewContent & Partial<NewFile>) {
    const { transaction, principal, id } = change
    await writeContent(transaction, id, file)
    await touchNode(transaction, id, now())
    const after = { sha256: file.content.sha256 }
    const entry = { kind: 'file' as const, id, action: 'update_content', after, at: now() }
    await recordChange(transaction, principal, entry)
    return notifyContent(change, file)
  }

  return {
    /**
     * Creates a file from stored content, owned by the owner of the folder. Throws `conflict` of code
     * `name_conflict`, `unprocessable`, and `service_unavailable` if the content is no longer stored.
     * `settle` ends the transaction; nothing is created if it throws.
     */
    async create(
      principal: RequestPrincipal,
      file: NewFile,
      settle?: (transaction: Transaction, id: string) => Promise<void>,
    ): Promise<FileRecord> {
      await keepContent(file)
      return inDestination({ ...file, principal }, async (transaction, location) => {
        const name = parseName(file.name)
        if (file.onConflict === 'replace') {
          const existing = await findNamed(transaction, location, name, null)
          if (existing?.kind === 'folder') throw nameConflict(name)
          if (existing !== undefined) {
            return replace({ transaction, principal, id: existing.id }, file)
          }
        }
        const node = { ...file, name, kind: 'file' } as const
        const id = await addNode({ transaction, principal }, location, node)
        await insertFile(transaction, id, file)
        await recordAddition({ transaction, principal, id }, location, node)
        const created = await notifyContent({ transaction, principal, id }, file)
        await settle?.(transaction, id)
        return created
      })
    },

    /** Records a content that is about to be stored, so that the sweep removes it if no file uses it. */
    claimContent: (content: StoredContent) => store.keepContent(content, now()),

    createFolder: (principal: RequestPrincipal, given: Placement & { name: string }) =>
      inDestination({ ...given, principal }, async (transaction, location) => {
        requireDepth(location, 1)
        const node = { ...given, name: parseName(given.name), kind: 'folder' } as const
        const id = await addNode({ transaction, principal }, location, node)
        await recordAddition({ transaction, principal, id }, location, node)
        const folder = await readRecord(transaction, principal, id)
        if (folder?.object !== 'folder') throw nodeNotFound('folder', id)
        return folder
      }),

    /** Requires read access to the source. */
    async copy(
      principal: RequestPrincipal,
      id: string,
      to: Placement & { name: string | null },
    ): Promise<FileRecord> {
      const owners = to.folderId === null ? [principal.userId] : []
      return store.inTrees({ nodes: [id, to.folderId], owners }, async (transaction) => {
        const node = await findNode(transaction, principal, id)
        const source = requireNode(node, { kind: 'file', id, role: 'viewer' })
        const location = await findDestination(transaction, principal, to.folderId)
        const copy = { ...to, name: parseName(to.name ?? source.name), kind: 'file' } as const
        const copyId = await addNode({ transaction, principal }, location, copy)
        await copyFile(transaction, id, copyId)
        const added = { transaction, principal, id: copyId }
        await recordAddition(added, location, { ...copy, copiedFrom: id })
        return notifyContent({ transaction, principal, id: copyId })
      })
    },

    /** Changes nothing and rethrows if `check` throws. */
    async replaceContent(
      principal: RequestPrincipal,
      id: string,
      content: NewContent,
      check: (current: FileRecord) => void,
    ): Promise<FileRecord> {
      await keepContent(content)
      return store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
        const change = { transaction, principal, id }
        const node = await findNode(transaction, principal, id)
        requireNode(node, { kind: 'file', id, role: 'editor' })
        check(await readFile(change))
        return replace(change, content)
      })
    },
  }
}

/** The trees of a change are locked, so concurrent additions are counted one after the other. */
async function requireStoredBytes(
  transaction: Transaction,
  id: string,
  bytesMax: number,
): Promise<void> {
  if ((await storedBytesBeside(transaction, id)) <= bytesMax) return
  throw new AppError(
    'insufficient_storage',
    `The limit of ${bytesMax} bytes of stored files is reached; delete files, also from the trash.`,
    { code: 'stored_bytes_exceeded' },
  )
}

async function readFile({ transaction, principal, id }: NodeChange): Promise<FileRecord> {
  const file = await readRecord(transaction, principal, id)
  if (file?.object !== 'file') throw nodeNotFound('file', id)
  return file
}
