import type {
  FileView,
  FolderView,
  NewContent,
  NewFile,
  NodeView,
  OnConflict,
} from '#files/files.ts'
import { nameKey, parseName } from '#files/names.ts'
import { copyFile, insertFile, insertNode, touchNode, writeContent } from '#files/node-store.ts'
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
import { findNode, type TreeLocation } from './store.ts'

/** A file whose content the storage has; see `Files.create`. */
export async function addFile(
  deps: TreeDeps,
  caller: RequestPrincipal,
  file: NewFile,
): Promise<FileView> {
  await keepContent(deps, file)
  return inPlace(deps, caller, file.folderId, async (transaction, place) => {
    const name = parseName(file.name)
    if (file.onConflict === 'replace') {
      const known = await findNamed(transaction, place, name, null)
      if (known?.kind === 'folder') throw nameConflict(name)
      if (known !== undefined) return replace(deps, { transaction, caller, id: known.id }, file)
    }
    const id = await addNode(deps, { transaction, caller, place }, { ...file, name, kind: 'file' })
    await insertFile(transaction, id, file)
    await deps.hooks.changed(transaction, { kind: 'content', fileIds: [id] })
    await join(deps, { transaction, caller, id }, file)
    return fileView(transaction, caller, id)
  })
}

export async function addFolder(
  deps: TreeDeps,
  caller: RequestPrincipal,
  folder: { name: string; folderId: string | null; onConflict: OnConflict },
): Promise<FolderView> {
  return inPlace(deps, caller, folder.folderId, async (transaction, place) => {
    requireDepth(place, 1)
    const name = parseName(folder.name)
    const wanted = { ...folder, name, kind: 'folder' } as const
    const id = await addNode(deps, { transaction, caller, place }, wanted)
    const view = await readView(transaction, caller, id)
    if (view?.kind !== 'folder') throw nodeNotFound('folder', id)
    return view
  })
}

/** Needs no more than to read the file that is copied. */
export async function copyOfFile(
  deps: TreeDeps,
  caller: RequestPrincipal,
  id: string,
  to: { folderId: string | null; name: string | null; onConflict: OnConflict },
): Promise<FileView> {
  const owners = to.folderId === null ? [caller.userId] : []
  return deps.store.inTrees({ nodes: [id, to.folderId], owners }, async (transaction) => {
    const found = await findNode(transaction, caller, id)
    const source = requireNode(found, { kind: 'file', id, role: 'viewer' })
    const place = await findDestination(transaction, caller, to.folderId)
    const wanted = { ...to, name: parseName(to.name ?? source.name), kind: 'file' } as const
    const copyId = await addNode(deps, { transaction, caller, place }, wanted)
    await copyFile(transaction, id, copyId)
    await deps.hooks.changed(transaction, { kind: 'content', fileIds: [copyId] })
    return fileView(transaction, caller, copyId)
  })
}

export async function replaceContent(
  deps: TreeDeps,
  caller: RequestPrincipal,
  { id, content, check }: { id: string; content: NewContent; check: (known: FileView) => void },
): Promise<FileView> {
  await keepContent(deps, content)
  return deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
    requireNode(await findNode(transaction, caller, id), { kind: 'file', id, role: 'editor' })
    check(await fileView(transaction, caller, id))
    return replace(deps, { transaction, caller, id }, content)
  })
}

/**
 * From here on the content stays for an hour at least. What is no longer used may have been removed
 * after the upload found it there: then it has to be sent again.
 */
async function keepContent({ store, storage, now }: TreeDeps, { content }: NewContent) {
  await store.keepContent(content, now())
  if (await storage.has(content.sha256)) return
  throw new AppError('service_unavailable', 'The content was not kept; send it again.', {
    retryAfterS: 0,
  })
}

type At = { transaction: Transaction; caller: RequestPrincipal; id: string }

async function replace(deps: TreeDeps, at: At, file: NewContent & Partial<NewFile>) {
  const { transaction, caller, id } = at
  await writeContent(transaction, id, file)
  await touchNode(transaction, id, deps.now())
  await deps.hooks.changed(transaction, { kind: 'content', fileIds: [id] })
  await join(deps, at, file)
  return fileView(transaction, caller, id)
}

async function join({ hooks }: TreeDeps, at: At, { collections = [] }: Partial<NewFile>) {
  if (collections.length === 0) return
  await hooks.joinCollections(at.transaction, at.caller, at.id, collections)
}

function inPlace<T extends NodeView>(
  { store }: TreeDeps,
  caller: RequestPrincipal,
  folderId: string | null,
  work: (transaction: Transaction, place: TreeLocation & { depth: number }) => Promise<T>,
): Promise<T> {
  const owners = folderId === null ? [caller.userId] : []
  return store.inTrees({ nodes: [folderId], owners }, async (transaction) =>
    work(transaction, await findDestination(transaction, caller, folderId)),
  )
}

async function addNode(
  { settings, now }: TreeDeps,
  at: { transaction: Transaction; caller: RequestPrincipal; place: TreeLocation },
  wanted: { name: string; kind: NodeKind; onConflict: OnConflict },
): Promise<string> {
  const { transaction, caller, place } = at
  const name = await freeName(transaction, place, { ...wanted, exceptId: null })
  await requireNodeQuota(transaction, place, { added: 1, perOwnerMax: settings.perOwnerMax })
  const id = Bun.randomUUIDv7()
  const { ownerId, parentId } = place
  await insertNode(transaction, {
    id,
    ownerId,
    parentId,
    kind: wanted.kind,
    createdBy: caller.userId,
    name,
    key: nameKey(name),
    now: now(),
  })
  return id
}

async function fileView(
  transaction: Transaction,
  caller: RequestPrincipal,
  id: string,
): Promise<FileView> {
  const view = await readView(transaction, caller, id)
  if (view?.kind !== 'file') throw nodeNotFound('file', id)
  return view
}
