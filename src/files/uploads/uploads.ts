import type { Transaction } from '#db/client.ts'
import { detectMimeType } from '#files/content/mime-type.ts'
import { type Receiver, tooLarge } from '#files/content/receive.ts'
import { parseName } from '#files/names.ts'
import type { FileRecord } from '#files/record.ts'
import type { Files } from '#files/tree.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { Storage, StoredContent } from '#storage/storage.ts'
import {
  type NewUpload,
  partsMax,
  renderPart,
  renderUpload,
  type UploadCompletion,
  type UploadPartRecord,
  type UploadRecord,
} from './schema.ts'
import {
  createUploadStore,
  endUpload,
  insertPart,
  lockUpload,
  type PartRow,
  totalOfParts,
  type UploadRow,
  type UploadsDatabase,
} from './store.ts'

export type UploadsDeps = {
  database: UploadsDatabase
  files: Pick<Files, 'create' | 'find'>
  storage: Pick<Storage, 'read'>
  settings: CurrentSettings
  receiver: Pick<Receiver, 'store' | 'inSlot'>
  now: () => Date
}

export type Uploads = ReturnType<typeof createUploads>

/** As in OpenAI's API. */
const lifetimeMs = 3_600_000
const pendingPerOwnerMax = 1_000

/**
 * Uploads in parts, as in OpenAI's API. The parts are contents of their own; completing an upload joins
 * them to the content of a file, and the sweep removes them.
 *
 * Only its owner sees an upload: others get `not_found`. An upload that has ended is `invalid_request`.
 */
export function createUploads({ files, storage, settings, receiver, now, ...deps }: UploadsDeps) {
  const store = createUploadStore(deps.database)

  async function find({ userId }: RequestPrincipal, id: string): Promise<UploadRow> {
    return requireUpload(isUuid(id) ? await store.find({ id, ownerId: userId }) : undefined, id)
  }

  const inPending = <T>(
    { userId }: RequestPrincipal,
    id: string,
    work: (transaction: Transaction, upload: UploadRow) => Promise<T>,
  ): Promise<T> =>
    store.inTransaction(async (transaction) => {
      const upload = requireUpload(await lockUpload(transaction, { id, ownerId: userId }), id)
      requirePending(upload, now())
      return work(transaction, upload)
    })

  /** The parts in this order; throws unless they are the whole file. */
  async function requireParts(upload: UploadRow, ids: readonly string[]) {
    const known = await store.findParts(upload, ids.filter(isUuid))
    const found = new Map(known.map((part) => [part.id, part]))
    const parts = ids.map((id) => {
      const part = found.get(id)
      if (part !== undefined) return part
      throw refusedCompletion('part_ids', `The upload has no part with the id "${id}".`)
    })
    if (found.size < ids.length) throw refusedCompletion('part_ids', 'A part is named twice.')
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
    if (bytes === upload.bytes) return parts
    throw refusedCompletion(
      'part_ids',
      `The parts have ${bytes} bytes; the upload was created for ${upload.bytes}.`,
    )
  }

  async function* join(
    parts: readonly PartRow[],
    { md5, signal }: { md5: string | undefined; signal: AbortSignal },
  ): AsyncGenerator<Uint8Array, void, void> {
    const hasher = md5 === undefined ? null : new Bun.CryptoHasher('md5')
    for (const { sha256 } of parts) {
      for await (const chunk of await storage.read(sha256)) {
        if (signal.aborted) throw new AppError('client_closed', 'The client disconnected.')
        hasher?.update(chunk)
        yield chunk
      }
    }
    const found = hasher?.digest('hex')
    if (found === md5?.toLowerCase()) return
    throw refusedCompletion('md5', `The file has the MD5 checksum ${found}.`)
  }

  /** The file of an upload that the same request has completed before: its client may not know. */
  async function findCompleted(
    principal: RequestPrincipal,
    upload: UploadRow,
    digest: string,
  ): Promise<FileRecord | null> {
    if (upload.fileId === null || upload.partsDigest !== digest) return null
    return files.find(principal, upload.fileId)
  }

  return {
    async create(
      { userId }: RequestPrincipal,
      { filename, purpose, bytes, expires_after: expiry }: NewUpload,
    ): Promise<UploadRecord> {
      const bytesMax = settings.current().files.max_bytes
      if (bytes > bytesMax) throw tooLarge('file', bytesMax)
      const createdAt = now()
      const upload: UploadRow = {
        id: Bun.randomUUIDv7(),
        ownerId: userId,
        status: 'pending',
        filename: parseName(filename, 'filename'),
        purpose,
        bytes,
        fileLifetimeS: expiry?.seconds ?? null,
        fileId: null,
        partsDigest: null,
        createdAt,
        expiresAt: new Date(createdAt.getTime() + lifetimeMs),
      }
      if (await store.insert(upload, { pendingMax: pendingPerOwnerMax })) {
        return renderUpload(upload, null)
      }
      throw new AppError('rate_limit_exceeded', `${pendingPerOwnerMax} uploads are pending.`)
    },

    /** Throws before a part is received that would be refused. */
    async requirePending(principal: RequestPrincipal, id: string): Promise<void> {
      requirePending(await find(principal, id), now())
    },

    addPart: (
      principal: RequestPrincipal,
      uploadId: string,
      content: StoredContent,
    ): Promise<UploadPartRecord> =>
      inPending(principal, uploadId, async (transaction) => {
        const bytesMax = settings.current().files.max_bytes
        const total = await totalOfParts(transaction, uploadId)
        if (total.bytes + content.bytes > bytesMax) throw tooLarge('file', bytesMax)
        if (total.count >= partsMax) {
          throw new AppError('invalid_request', `An upload may have ${partsMax} parts.`)
        }
        const part = { id: Bun.randomUUIDv7(), uploadId, createdAt: now() }
        await insertPart(transaction, { ...part, content })
        return renderPart(part)
      }),

    /** A repeated request returns the same file. Until the end, an upload can be completed again. */
    async complete(
      principal: RequestPrincipal,
      id: string,
      { part_ids: partIds, md5 }: UploadCompletion,
      signal: AbortSignal,
    ): Promise<UploadRecord> {
      const upload = await find(principal, id)
      const partsDigest = digestOf(partIds)
      const completed = await findCompleted(principal, upload, partsDigest)
      if (completed !== null) return renderUpload(upload, completed)
      const startedAt = now()
      requirePending(upload, startedAt)
      const parts = await requireParts(upload, partIds)
      const { filename, purpose, bytes, fileLifetimeS } = upload
      return receiver.inSlot(principal.userId, async () => {
        const content = await receiver.store(join(parts, { md5, signal }), bytes)
        const file = await files.create(
          principal,
          {
            name: filename,
            folderId: null,
            attributes: {},
            purpose,
            collections: [],
            lifetimeS: fileLifetimeS,
            onConflict: 'allow',
            content,
            mimeType: await detectMimeType(content.head, filename),
          },
          async (transaction, fileId) => {
            requirePending(requireUpload(await lockUpload(transaction, upload), id), startedAt)
            await endUpload(transaction, id, { status: 'completed', fileId, partsDigest })
          },
        )
        return renderUpload({ ...upload, status: 'completed' }, file)
      })
    },

    /** An upload that was cancelled before stays so. */
    async cancel(principal: RequestPrincipal, id: string): Promise<UploadRecord> {
      const upload = await find(principal, id)
      if (upload.status === 'cancelled') return renderUpload(upload, null)
      return inPending(principal, id, async (transaction, pending) => {
        await endUpload(transaction, id, { status: 'cancelled' })
        return renderUpload({ ...pending, status: 'cancelled' }, null)
      })
    },
  }
}

function requireUpload(upload: UploadRow | undefined, id: string): UploadRow {
  if (upload !== undefined) return upload
  throw new AppError('not_found', `There is no upload with the id "${id}".`, { param: 'id' })
}

function requirePending({ status, expiresAt }: UploadRow, time: Date): void {
  const current = status === 'pending' && expiresAt <= time ? 'expired' : status
  if (current === 'pending') return
  throw new AppError('invalid_request', `The upload is ${current}.`, { param: 'id' })
}

function refusedCompletion(param: string, sentence: string): AppError {
  return new AppError('invalid_request', sentence, { param })
}

function digestOf(partIds: readonly string[]): string {
  return new Bun.CryptoHasher('sha256').update(partIds.join()).digest('hex')
}
