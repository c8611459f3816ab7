import { signal } from '@preact/signals'
import { call, isAborted, messageOf } from '../../api/call.ts'
import { ApiError } from '../../api/errors.ts'
import type { File as StoredFile } from '../../api/generated/types.ts'
import {
  type BegunUpload,
  findBegun,
  findInterrupted,
  forgetBegun,
  identityOf,
  keepBegun,
} from './begun-uploads.ts'
import { isPassing, postForm } from './transfer.ts'

export type UploadTarget = {
  readonly folderId: string | null
  /** The id of a collection that the files join. */
  readonly collectionId?: string
}

type UploadState = 'waiting' | 'sending' | 'done' | 'failed' | 'cancelled'

export type Upload = {
  readonly id: number
  readonly name: string
  readonly bytes: number
  readonly sent: number
  readonly state: UploadState
  /** Why it failed. */
  readonly reason: string | null
}

type Work = {
  readonly file: File
  readonly target: UploadTarget
  controller: AbortController
}

/** Browsers allow six connections per host; the page itself needs some. */
const sendingMax = 3
/** Larger files are sent in parts. */
const wholeBytesMax = 8 * 1024 * 1024
const partBytes = 8 * 1024 * 1024
const retriesMax = 3
const retryMs = 1_000
/** Of an upload that expired, was cancelled or is that of somebody else. */
const goneStatus: readonly number[] = [400, 404]

/** Uploads of this visit; they continue while other pages are shown. */
export const uploads = signal<readonly Upload[]>([])
/** Increases with each completed file. */
export const uploadedCount = signal(0)

const works = new Map<number, Work>()
let lastId = 0

export function enqueue(files: readonly File[], target: UploadTarget): void {
  const added = files.map((file): Upload => {
    lastId += 1
    works.set(lastId, { file, target, controller: new AbortController() })
    const { name, size: bytes } = file
    return { id: lastId, name, bytes, sent: 0, state: 'waiting', reason: null }
  })
  uploads.value = [...uploads.value, ...added]
  showInterrupted()
  startNext()
}

export function cancelUpload(id: number): void {
  const work = works.get(id)
  work?.controller.abort()
  const begun = work === undefined ? null : findBegun(work.file)
  if (begun !== null) discard(begun)
  change(id, { state: 'cancelled', sent: 0 })
}

/** What the gateway has of a file is not wanted any more. */
export function discard(begun: BegunUpload): void {
  forgetBegun(begun)
  showInterrupted()
  // An abandoned upload expires by itself.
  const path = { upload_id: begun.uploadId }
  void call('POST /v1/uploads/{upload_id}/cancel', { path }).catch(() => {})
}

/** Shows the uploads that a former visit has not completed. */
export function showInterrupted(): void {
  findInterrupted([...works.values()].map(({ file }) => identityOf(file)))
}

export function cancelAll(): void {
  for (const { id, state } of uploads.value) {
    if (state === 'waiting' || state === 'sending') cancelUpload(id)
  }
}

export function retryUpload(id: number): void {
  const work = works.get(id)
  if (work === undefined) return
  work.controller = new AbortController()
  change(id, { state: 'waiting', reason: null })
  startNext()
}

export function retryFailed(): void {
  for (const { id, state } of uploads.value) if (state === 'failed') retryUpload(id)
}

/** Forgets uploads that have ended. */
export function clearEnded(): void {
  const isActive = ({ state }: Upload) => state === 'waiting' || state === 'sending'
  for (const upload of uploads.value) if (!isActive(upload)) works.delete(upload.id)
  uploads.value = uploads.value.filter(isActive)
}

function change(id: number, changed: Partial<Upload>): void {
  uploads.value = uploads.value.map((one) => (one.id === id ? { ...one, ...changed } : one))
}

const stay = (event: Event) => event.preventDefault()

function startNext(): void {
  const sending = uploads.value.filter(({ state }) => state === 'sending').length
  const waiting = uploads.value.filter(({ state }) => state === 'waiting')
  for (const { id } of waiting.slice(0, Math.max(0, sendingMax - sending))) void run(id)
  // Leaving the site would end them.
  const listen = waiting.length + sending > 0 ? addEventListener : removeEventListener
  listen('beforeunload', stay)
}

async function run(id: number): Promise<void> {
  const work = works.get(id)
  if (work === undefined) return
  const { signal: aborted } = work.controller
  change(id, { state: 'sending' })
  const onBytes = (sent: number) => change(id, { sent: Math.min(sent, work.file.size) })
  try {
    if (work.file.size > wholeBytesMax) await sendParts(work, onBytes)
    else await sendWhole(work, onBytes)
    works.delete(id)
    change(id, { state: 'done', sent: work.file.size })
    uploadedCount.value += 1
  } catch (error) {
    if (!aborted.aborted && !isAborted(error)) {
      change(id, { state: 'failed', reason: messageOf(error) })
    }
  }
  startNext()
}

async function sendWhole(
  { file, target, controller }: Work,
  onBytes: (sent: number) => void,
): Promise<void> {
  const { folderId, collectionId } = target
  const form = new FormData()
  form.set('on_conflict', 'rename')
  if (folderId !== null) form.set('folder_id', folderId)
  if (collectionId !== undefined) form.set('collections', JSON.stringify([collectionId]))
  form.set('file', file)
  const { signal: aborted } = controller
  await withRetries(aborted, () =>
    postForm<'POST /v1/files'>('/v1/files', form, { signal: aborted, onBytes }),
  )
}

/** Sends what the gateway does not have yet, then assembles the file and puts it in its place. */
async function sendParts(work: Work, onBytes: (sent: number) => void): Promise<void> {
  const { file, target } = work
  const found = findBegun(file)
  const stored = await sendRest(work, found ?? (await begin(work)), onBytes).catch((error) => {
    // The gateway does not have it any more, or never had: as after a login as somebody else.
    const isGone = error instanceof ApiError && goneStatus.includes(error.status)
    if (found === null || !isGone) throw error
    forgetBegun(found)
    return sendParts(work, onBytes)
  })
  if (stored) await place(stored, target)
  forgetBegun(identityOf(file))
}

async function begin({ file, controller }: Work): Promise<BegunUpload> {
  const body = {
    filename: file.name,
    purpose: 'user_data',
    bytes: file.size,
    mime_type: file.type || 'application/octet-stream',
  }
  const created = await call('POST /v1/uploads', { body, signal: controller.signal })
  const { id: uploadId, expires_at: expiresAt } = created
  return { uploadId, expiresAt, partIds: [], ...identityOf(file) }
}

async function sendRest(
  { file, controller }: Work,
  begun: BegunUpload,
  onBytes: (sent: number) => void,
): Promise<StoredFile | null> {
  const { signal: aborted } = controller
  const { uploadId } = begun
  let { partIds } = begun
  keepBegun(begun)
  for (let start = partIds.length * partBytes; start < file.size; start += partBytes) {
    const form = new FormData()
    form.set('data', file.slice(start, start + partBytes))
    const part = await withRetries(aborted, () =>
      postForm<'POST /v1/uploads/{upload_id}/parts'>(`/v1/uploads/${uploadId}/parts`, form, {
        signal: aborted,
        onBytes: (sent) => onBytes(start + sent),
      }),
    )
    partIds = [...partIds, part.id]
    if (!aborted.aborted) keepBegun({ ...begun, partIds })
  }
  const { file: stored } = await call('POST /v1/uploads/{upload_id}/complete', {
    path: { upload_id: uploadId },
    body: { part_ids: [...partIds] },
    signal: aborted,
  })
  return stored
}

async function place({ id }: StoredFile, { folderId, collectionId }: UploadTarget): Promise<void> {
  if (folderId !== null) {
    await call('POST /v1/files/{file_id}/move', {
      path: { file_id: id },
      body: { folder_id: folderId, on_conflict: 'rename' },
    })
  }
  if (collectionId !== undefined) {
    await call('POST /v1/collections/{name}/files', {
      path: { name: collectionId },
      body: { file_id: id },
    })
  }
}

async function withRetries<T>(aborted: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let retry = 0; ; retry++) {
    try {
      return await attempt()
    } catch (error) {
      if (aborted.aborted || retry === retriesMax || !isPassing(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, retryMs * 2 ** retry))
    }
  }
}
