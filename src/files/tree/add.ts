import type { FileView, FolderView, NewContent, NewFile, OnConflict } from '#files/files.ts'
import { nameKey, parseName } from '#files/names.ts'
import type { TreeDeps } from '#files/tree.ts'
import { readView } from '#files/view-store.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
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
  type TreeLocation,
  touchNode,
  writeContent,
} from './store.ts'

/** See `Files.create`. */
export async function addFile(
  deps: TreeDeps,
  principal: RequestPrincipal,
  file: NewFile,
): Promise<FileView> {
  await keepContent(deps, file)
  return inDestination(deps, principal, file.folderId, async (transaction, location) => {
    const name = parseName(file.name)
    if (file.onConflict === 'replace') {
      const existing = await findNamed(transaction, location, name, null)
      if (existing?.kind === 'folder') throw nameConflict(name)
      if (existing !== undefined) {
        return replace(deps, { transaction, principal, id: existing.id }, file)
      }
    }
    const id = await addNode(
      deps,
      { transaction, principal, location },
      {
        ...file,
        name,
        kind: 'file',
      },
    )
    await insertFile(transaction, id, file)
    await deps.hooks.changed(transaction, { kind: 'content', fileIds: [id] })
    await joinCollections(deps, { transaction, principal, id }, file)
    return fileView(transaction, principal, id)
  })
}

export async function addFolder(
  deps: TreeDeps,
  principal: RequestPrincipal,
  folder: { name: string; folderId: string | null; onConflict: OnConflict },
): Promise<FolderView> {
  return inDestination(deps, principal, folder.folderId, async (transaction, location) => {
    requireDepth(location, 1)
    const node = { ...folder, name: parseName(folder.name), kind: 'folder' } as const
    const id = await addNode(deps, { transaction, principal, location }, node)
    const view = await readView(transaction, principal, id)
    if (view?.kind !== 'folder') throw nodeNotFound('folder', id)
    return view
  })
}

/** Requires read access to the source only. */
export async function copyOfFile(
  deps: TreeDeps,
  principal: RequestPrincipal,
  id: string,
  to: { folderId: string | null; name: string | null; onConflict: OnConflict },
): Promise<FileView> {
  const owners = to.folderId === null ? [principal.userId] : []
  return deps.store.inTrees({ nodes: [id, to.folderId], owners }, async (transaction) => {
    const node = await findNode(transaction, principal, id)
    const source = requireNode(node, { kind: 'file', id, role: 'viewer' })
    const location = await findDestination(transaction, principal, to.folderId)
    const copy = { ...to, name: parseName(to.name ?? source.name), kind: 'file' } as const
    const copyId = await addNode(deps, { transaction, principal, location }, copy)
    await copyFile(transaction, id, copyId)
    await deps.hooks.changed(transaction, { kind: 'content', fileIds: [copyId] })
    return fileView(transaction, principal, copyId)
  })
}

export async function replaceContent(
  deps: TreeDeps,
  principal: RequestPrincipal,
  { id, content, check }: { id: string; content: NewContent; check: (current: FileView) => void },
): Promise<FileView> {
  await keepContent(deps, content)
  return deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
    requireNode(await findNode(transaction, principal, id), { kind: 'file', id, role: 'editor' })
    check(await fileView(transaction, principal, id))
    return replace(deps, { transaction, principal, id }, content)
  })
}

/** The sweep may have removed unused content between the upload and this call. */
async function keepContent({ store, storage, now }: TreeDeps, { content }: NewContent) {
  await store.keepContent(content, now())
  if (await storage.has(content.sha256)) return
  throw new AppError('service_unavailable', 'The content was not stored; send it again.', {
    retryAfterS: 0,
  })
}

type NodeChange = { transaction: Transaction; principal: RequestPrincipal; id: string }

async function replace(deps: TreeDeps, change: NodeChange, file: NewContent & Partial<NewFile>) {
  const { transaction, principal, id } = change
  await writeContent(transaction, id, file)
  await touchNode(transaction, id, deps.now())
  await deps.hooks.changed(transaction, { kind: 'content', fileIds: [id] })
  await joinCollections(deps, change, file)
  return fileView(transaction, principal, id)
}

async function joinCollections(
  { hooks }: TreeDeps,
  { transaction, principal, id }: NodeChange,
  { collections = [] }: Partial<NewFile>,
) {
  if (collections.length === 0) return
  await hooks.joinCollections(transaction, principal, id, collections)
}

function inDestination<T>(
  { store }: TreeDeps,
  principal: RequestPrincipal,
  folderId: string | null,
  work: (transaction: Transaction, location: TreeLocation & { depth: number }) => Promise<T>,
): Promise<T> {
  const owners = folderId === null ? [principal.userId] : []
  return store.inTrees({ nodes: [folderId], owners }, async (transaction) =>
    work(transaction, await findDestination(transaction, principal, folderId)),
  )
}

async function addNode(
  { limits, now }: TreeDeps,
  {
    transaction,
    principal,
    location,
  }: { transaction: Transaction; principal: RequestPrincipal; location: TreeLocation },
  node: { name: string; kind: NodeKind; onConflict: OnConflict },
): Promise<string> {
  const name = await freeName(transaction, location, { ...node, exceptId: null })
  await requireNodeQuota(transaction, location, { added: 1, perOwnerMax: limits.perOwnerMax })
  const id = Bun.randomUUIDv7()
  await insertNode(transaction, {
    id,
    ownerId: location.ownerId,
    parentId: location.parentId,
    kind: node.kind,
    createdBy: principal.userId,
    name,
    key: nameKey(name),
    now: now(),
  })
  return id
}

async function fileView(
  transaction: Transaction,
  principal: RequestPrincipal,
  id: string,
): Promise<FileView> {
  const view = await readView(transaction, principal, id)
  if (view?.kind !== 'file') throw nodeNotFound('file', id)
  return view
}
