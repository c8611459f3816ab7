import type { Config } from '#config/schema.ts'
import type { Files } from '#files/tree.ts'
import { readLongBody } from '#http/long-body.ts'
import { readMultipart } from '#http/multipart.ts'
import { AppError } from '#lib/errors.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { Storage, StoredContent } from '#storage/storage.ts'

export type ReceiverDeps = {
  files: Pick<Files, 'claimContent'>
  storage: Pick<Storage, 'put'>
  settings: CurrentSettings
  config: Pick<Config, 'files'>
}

type Upload = {
  /** Null for a raw body. */
  readonly fields: ReadonlyMap<string, string> | null
  readonly content: StoredContent
  readonly filename: string | null
}

type UploadForm = {
  readonly userId: string
  readonly what: 'file' | 'part'
  /** The field of the form that has the content; null: a form is stored as it is. */
  readonly formField: string | null
  readonly acceptsRaw: boolean
  /** Below the limit of files. */
  readonly bytesMax?: number
}

export type Receiver = ReturnType<typeof createReceiver>

/** Users whose stalled uploads are needed to take all slots. */
const uploadUsersMin = 4
const multipartOverheadBytesMax = 1_048_576
const formLimits = { fieldsMax: 16, fieldBytesMax: 65_536, filesMax: 1 }

/** Limits the number of concurrent uploads, their size and their duration. */
export function createReceiver({
  files,
  storage,
  settings,
  config: { files: limits },
}: ReceiverDeps) {
  const deadlines = { gapMs: limits.uploadGapMs, totalMs: limits.uploadMs }
  let running = 0
  const runningByUser = new Map<string, number>()
  const uploadsPerUserMax = Math.ceil(limits.uploadsMax / uploadUsersMin)

  const store = (content: AsyncIterable<Uint8Array>, bytesMax: number) =>
    storage.put(content, { bytesMax, claim: files.claimContent })

  async function receiveForm(
    request: Request,
    { formField, bytesMax }: { formField: string; bytesMax: number },
  ): Promise<Upload> {
    const { fields, files } = await readMultipart(
      request,
      { ...formLimits, ...deadlines },
      async ({ field }, content) => {
        if (field === formField) return store(content, bytesMax)
        throw new AppError(
          'unknown_field',
          `There is no file field "${field}"; send "${formField}".`,
          { param: field },
        )
      },
    )
    const [file] = files
    if (file === undefined) {
      throw new AppError('unprocessable', 'The form has no file.', { param: formField })
    }
    return { fields, content: file.taken, filename: file.part.filename }
  }

  /** Runs within the limits of concurrent uploads; throws `too_many_streams`. */
  async function inSlot<T>(userId: string, work: () => Promise<T>): Promise<T> {
    const ofUser = runningByUser.get(userId) ?? 0
    if (running >= limits.uploadsMax || ofUser >= uploadsPerUserMax) {
      throw new AppError('too_many_streams', 'Too many uploads are in progress.', {
        retryAfterS: 1,
      })
    }
    running++
    runningByUser.set(userId, ofUser + 1)
    try {
      return await work()
    } finally {
      running--
      const left = (runningByUser.get(userId) ?? 1) - 1
      if (left > 0) runningByUser.set(userId, left)
      else runningByUser.delete(userId)
    }
  }

  return {
    store,
    inSlot,
    receive(
      request: Request,
      { userId, what, formField, acceptsRaw, bytesMax: ownMax }: UploadForm,
    ): Promise<Upload> {
      return inSlot(userId, async () => {
        const bytesMax = Math.min(settings.current().files.max_bytes, ownMax ?? Infinity)
        const hasForm = /^multipart\//i.test(request.headers.get('content-type') ?? '')
        const contentLength = Number(request.headers.get('content-length') ?? 0)
        if (contentLength > bytesMax + (hasForm ? multipartOverheadBytesMax : 0)) {
          throw tooLarge(what, bytesMax)
        }
        if (formField !== null && (hasForm || !acceptsRaw)) {
          return receiveForm(request, { formField, bytesMax })
        }
        const content = await store(readLongBody(request, deadlines), bytesMax)
        return { fields: null, content, filename: null }
      })
    },
  }
}

export function tooLarge(what: UploadForm['what'], bytesMax: number): AppError {
  return new AppError('request_too_large', `A ${what} may have at most ${bytesMax} bytes.`, {
    code: 'file_too_large',
  })
}
