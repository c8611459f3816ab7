import type { Config } from '#config/schema.ts'
import type { Files } from '#files/tree.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { Page } from '#lib/page.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Storage, StoredContent } from '#storage/storage.ts'
import { type Batch, hasEnded, type LinePath, messagesPath, type NewBatch } from './batches.ts'
import type { BatchPageRequest, BatchStore } from './store.ts'
import type { BatchWork } from './work.ts'

export type Batches = ReturnType<typeof createBatches>

type BatchesDeps = {
  store: BatchStore
  work: Pick<BatchWork, 'addBatchJob' | 'announceClosed'>
  files: Pick<Files, 'find' | 'claimContent'>
  storage: Pick<Storage, 'has' | 'put'>
  config: { batches: Config['batches'] }
  now: () => Date
}

/** The API that created a batch; each knows its own. */
type Api = { readonly isMessages: boolean }

type CreateOptions = Pick<NewBatch, 'metadata' | 'outputLifetimeS' | 'headers'> & {
  readonly endpoint: LinePath
}

const unfinishedRetryAfterS = 60

/** Batches of callers, who see their own. */
export function createBatches({ store, work, files, storage, config, now }: BatchesDeps) {
  const ownerOf = ({ principal }: RequestContext, { isMessages }: Api) => {
    return { ownerId: principal.userId, isMessages }
  }

  async function create(
    context: RequestContext,
    options: CreateOptions,
    input: Pick<NewBatch, 'inputFileId' | 'total'> & { content: StoredContent },
  ): Promise<Batch> {
    const { unfinishedPerOwnerMax: unfinishedMax, windowS } = config.batches
    const { content, ...rest } = input
    // The sweep keeps it for an hour, and from then on for the batch.
    await files.claimContent(content)
    if (!(await storage.has(content.sha256))) throw contentLost()
    const isMessages = options.endpoint === messagesPath
    const createdAt = now()
    const { principal, keyId, requestId } = context
    const given: NewBatch = {
      ...options,
      ...rest,
      id: newId(isMessages ? 'msgbatch_' : 'batch_'),
      ownerId: principal.userId,
      keyId,
      groups: principal.groups,
      requestId,
      inputSha256: content.sha256,
      inputBytes: content.bytes,
      createdAt,
      expiresAt: new Date(createdAt.getTime() + windowS * 1_000),
    }
    if (!(await store.insert(given, { unfinishedMax, addJob: work.addBatchJob }))) {
      throw tooMany(unfinishedMax)
    }
    return find(context, { isMessages }, given.id)
  }

  async function find(context: RequestContext, api: Api, id: string): Promise<Batch> {
    const found = await store.find(ownerOf(context, api), id)
    if (found === undefined) throw batchNotFound(id)
    return found
  }

  return {
    find,

    /** Of the requests in a file that the principal may read. */
    async createFromFile(
      context: RequestContext,
      { fileId, ...options }: CreateOptions & { fileId: string },
    ): Promise<Batch> {
      const file = await files.find(context.principal, fileId)
      const refuse = (problem: string, code?: string) =>
        new AppError('invalid_request', `input_file_id ${problem}.`, {
          param: 'input_file_id',
          ...(code === undefined ? {} : { code }),
        })
      if (file.purpose !== 'batch') {
        throw refuse('must name a file that was uploaded with the purpose "batch"')
      }
      const { inputBytesMax } = config.batches
      if (file.bytes > inputBytesMax) {
        throw refuse(`must name a file of at most ${inputBytesMax} bytes`, 'file_too_large')
      }
      const content = { sha256: file.sha256, bytes: file.bytes, head: new Uint8Array() }
      return create(context, options, { content, inputFileId: fileId, total: 0 })
    },

    /** Of requests in the body, as lines of an input. */
    async createFromLines(
      context: RequestContext,
      { lines, total, ...options }: CreateOptions & { lines: Iterable<string>; total: number },
    ): Promise<Batch> {
      const content = await storage.put(encoded(lines), {
        bytesMax: config.batches.inputBytesMax,
        claim: files.claimContent,
      })
      return create(context, options, { content, inputFileId: null, total })
    },

    /** Throws `invalid_request` for a cursor that is no batch of the caller. */
    async list(
      context: RequestContext,
      { cursorParam, ...request }: BatchPageRequest & Api & { cursorParam: string },
    ): Promise<Page<Batch>> {
      const page = await store.list(ownerOf(context, request), request)
      if (page !== undefined) return page
      throw new AppError(
        'invalid_request',
        `${cursorParam} must be the id of one of your batches.`,
        {
          param: cursorParam,
        },
      )
    },

    /** Throws `conflict` for a batch that has ended or is about to. */
    async cancel(context: RequestContext, api: Api, id: string): Promise<Batch> {
      const given = { addJob: work.addBatchJob, now: now() }
      const isChanged = await store.cancel(ownerOf(context, api), id, given)
      if (isChanged) await work.announceClosed(id)
      const batch = await find(context, api, id)
      if (isChanged || batch.status === 'cancelling') return batch
      throw new AppError('conflict', `A batch with status ${batch.status} cannot be cancelled.`, {
        code: 'batch_not_cancellable',
      })
    },

    /** Throws `invalid_request` for a batch that has not ended. */
    async remove(context: RequestContext, api: Api, id: string): Promise<void> {
      const batch = await find(context, api, id)
      if (hasEnded(batch) && (await store.remove(ownerOf(context, api), id))) return
      if (hasEnded(batch)) throw batchNotFound(id)
      throw new AppError('invalid_request', 'The batch has not ended; cancel it first.')
    },
  }
}

export function batchNotFound(id: string): AppError {
  return new AppError('not_found', `There is no batch with the id "${id}".`, { param: 'id' })
}

function contentLost(): AppError {
  return new AppError('service_unavailable', 'The content was not stored; send it again.', {
    retryAfterS: 0,
  })
}

function tooMany(unfinishedMax: number): AppError {
  return new AppError(
    'rate_limit_exceeded',
    `You have ${unfinishedMax} unfinished batches, which is the limit.`,
    { retryAfterS: unfinishedRetryAfterS },
  )
}

async function* encoded(lines: Iterable<string>): AsyncGenerator<Uint8Array, void, void> {
  const encoder = new TextEncoder()
  for (const line of lines) yield encoder.encode(`${line}\n`)
}
