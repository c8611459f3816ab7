import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import type { FileView, NewContent, NewFile } from '#files/files.ts'
import { nodeId } from '#files/node-routes.ts'
import { renderFile } from '#files/render.ts'
import { readLongBody } from '#http/long-body.ts'
import { readMultipart } from '#http/multipart.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { type IsExpected, readIfMatch } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Storage, StoredContent } from '#storage/storage.ts'
import { mimeTypeOf } from './mime-type.ts'
import { contentOperations } from './operations.ts'
import { readUploadFields } from './upload-fields.ts'

export type UploadRoutesDeps = {
  auth: Auth
  files: {
    create(caller: RequestPrincipal, file: NewFile): Promise<FileView>
    find(caller: RequestPrincipal, id: string): Promise<FileView>
    replaceContent(
      caller: RequestPrincipal,
      id: string,
      content: NewContent,
      check: (known: FileView) => void,
    ): Promise<FileView>
  }
  storage: Pick<Storage, 'put'>
  config: Pick<Config, 'files'>
  now: () => Date
}

const fieldsMax = 16
const fieldBytesMax = 65_536

/** How contents come in: as a form, or bare. Either way nothing of them is held in memory. */
export function uploadRoutes(deps: UploadRoutesDeps) {
  const { auth, files, now } = deps
  const receive = createReceiver(deps)
  return new Elysia({ name: 'uploads', prefix: '/v1/files' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request, set }) => {
        const { fields, content, filename } = await receive(request, () =>
          isForm(request) ? takeForm(request, deps) : takeBare(request, deps),
        )
        const { name, ...rest } = readUploadFields(fields, now())
        const chosen = name ?? filename
        if (chosen === null) throw nameless()
        const mimeType = await mimeTypeOf(content.head, chosen)
        set.status = 201
        return renderFile(
          await files.create(principal, { ...rest, name: chosen, content, mimeType }),
        )
      },
      { requires: 'can_access_api', parse: 'none', detail: contentOperations.upload },
    )
    .put(
      '/:id/content',
      async ({ principal, params, request, set }) => {
        const id = nodeId('file', params)
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const currentTag = async () => (await files.find(principal, id)).sha256
        return withCurrentTag(set, currentTag, async () => {
          // Before the bytes: nobody shall send a long file in vain.
          const known = await files.find(principal, id)
          demandMatch(known, isExpected)
          const { content } = await receive(request, () => takeBare(request, deps))
          const mimeType = await mimeTypeOf(content.head, known.name)
          const check = (file: FileView) => demandMatch(file, isExpected)
          return renderFile(await files.replaceContent(principal, id, { content, mimeType }, check))
        })
      },
      { requires: 'can_access_api', parse: 'none', detail: contentOperations.replace },
    )
}

type Received = {
  readonly fields: ReadonlyMap<string, string>
  readonly content: StoredContent
  readonly filename: string | null
}

/** Bounds how many uploads run. */
function createReceiver({ config }: Pick<UploadRoutesDeps, 'config'>) {
  let running = 0
  return async <T>(request: Request, take: () => Promise<T>): Promise<T> => {
    if (running >= config.files.uploadsMax) {
      throw new AppError('too_many_streams', 'The server has no room for another upload.', {
        retryAfterS: 1,
      })
    }
    refuseAnnounced(request, config.files.bytesMax)
    running++
    try {
      return await take()
    } finally {
      running--
    }
  }
}

/** A form is a little longer than what is in it. */
const formBytesMax = 1_048_576

function refuseAnnounced(request: Request, bytesMax: number): void {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced <= bytesMax + (isForm(request) ? formBytesMax : 0)) return
  throw new AppError('request_too_large', `A file may have ${bytesMax} bytes.`, {
    code: 'file_too_large',
  })
}

async function takeForm(
  request: Request,
  { storage, config }: Pick<UploadRoutesDeps, 'storage' | 'config'>,
): Promise<Received> {
  const { bytesMax } = config.files
  const limits = { fieldsMax, fieldBytesMax, filesMax: 1, ...deadlinesOf(config) }
  const form = await readMultipart(request, limits, async ({ field }, bytes) => {
    if (field === 'file') return storage.put(bytes, { bytesMax })
    throw new AppError('unknown_field', `There is no file field "${field}"; send "file".`, {
      param: field,
    })
  })
  const [file] = form.files
  if (file === undefined) {
    throw new AppError('unprocessable', 'The form has no file.', { param: 'file' })
  }
  return { fields: form.fields, content: file.taken, filename: file.part.filename }
}

async function takeBare(
  request: Request,
  { storage, config }: Pick<UploadRoutesDeps, 'storage' | 'config'>,
): Promise<Received> {
  const { bytesMax } = config.files
  const bytes = readLongBody(request, deadlinesOf(config))
  const fields = new Map(new URL(request.url).searchParams)
  return { fields, content: await storage.put(bytes, { bytesMax }), filename: null }
}

function deadlinesOf({ files }: Pick<Config, 'files'>) {
  return { gapMs: files.uploadGapMs, totalMs: files.uploadMs }
}

function isForm(request: Request): boolean {
  return /^multipart\//i.test(request.headers.get('content-type') ?? '')
}

function demandMatch({ sha256 }: FileView, isExpected: IsExpected): void {
  if (isExpected(sha256)) return
  throw new AppError('precondition_failed', 'The content has changed since.')
}

function nameless(): AppError {
  return new AppError('unprocessable', 'The file needs a name.', { param: 'name' })
}
