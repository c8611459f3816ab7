import { createFolder } from './nodes.ts'
import { enqueue, type UploadTarget } from './upload-queue.ts'

type Dropped = { readonly file: File; readonly folders: readonly string[] }

const depthMax = 30

/** Uploads what was dropped; of dropped folders everything, into folders of the same names. */
export async function enqueueDropped(transfer: DataTransfer, target: UploadTarget): Promise<void> {
  const placed = await placeDropped(await readDropped(transfer), target.folderId)
  for (const [folderId, files] of placed) enqueue(files, { ...target, folderId })
}

/** The files of a drop, with those in dropped folders. */
async function readDropped(transfer: DataTransfer): Promise<Dropped[]> {
  // The list of items is only valid during the event.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry())
  const plain = [...transfer.files].map((file) => ({ file, folders: [] }))
  if (!entries.some((entry) => entry?.isDirectory)) return plain
  const found: Dropped[] = []
  for (const entry of entries) if (entry !== null) await collect(entry, [], found)
  return found
}

async function collect(
  entry: FileSystemEntry,
  folders: readonly string[],
  found: Dropped[],
): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    )
    found.push({ file, folders })
    return
  }
  if (folders.length === depthMax) return
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  while (true) {
    // A reader returns its entries in portions.
    const portion = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (portion.length === 0) return
    for (const child of portion) await collect(child, [...folders, entry.name], found)
  }
}

/** Files by the folder that they belong into; missing folders are made. */
async function placeDropped(
  dropped: readonly Dropped[],
  folderId: string | null,
): Promise<ReadonlyMap<string | null, readonly File[]>> {
  const ids = new Map<string, string | null>([['', folderId]])
  const placed = new Map<string | null, File[]>()
  for (const { file, folders } of dropped) {
    const id = await idOf(folders, ids)
    placed.set(id, [...(placed.get(id) ?? []), file])
  }
  return placed
}

async function idOf(
  folders: readonly string[],
  ids: Map<string, string | null>,
): Promise<string | null> {
  const key = folders.join('/')
  const known = ids.get(key)
  if (known !== undefined) return known
  const parent = await idOf(folders.slice(0, -1), ids)
  const { id } = await createFolder(folders.at(-1) ?? '', parent)
  ids.set(key, id)
  return id
}
