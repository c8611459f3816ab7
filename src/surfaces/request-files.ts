import { createHash } from 'node:crypto'
import { quote } from '#api/read-object.ts'
import type { Config } from '#config/schema.ts'
import type { Files } from '#files/tree.ts'
import type { ContentPart, GenerationRequest, InlineFile } from '#inference/request.ts'
import { countChars } from '#inference/token-estimate.ts'
import type { Target } from '#inference/upstream.ts'
import { readDataUrl } from '#lib/data-url.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { DocumentReader, ReadDocument } from '#retrieval/extraction/document-reader.ts'
import type { Storage } from '#storage/storage.ts'

type ImagePart = Extract<ContentPart, { type: 'image' }>
type FilePart = Extract<ContentPart, { type: 'file' }>
type FileContent = {
  readonly name: string
  readonly mimeType: string
  /** For a reader of its text. */
  readonly content: () => {
    readonly bytes: number
    readonly sha256: string
    readonly open: () => Promise<ReadableStream<Uint8Array>>
  }
  /** Throws `request_too_large`. */
  readonly base64: () => Promise<string>
}

type LoadOptions = {
  readonly targets: readonly Target[]
  /** Of the model. */
  readonly capabilities: readonly string[]
  readonly context: Pick<RequestContext, 'principal' | 'signal'>
}

export type RequestFiles = ReturnType<typeof createRequestFiles>

/** Loads the files of requests to models: those that a request holds, and stored ones by id. */
export function createRequestFiles(deps: {
  files: Pick<Files, 'find'>
  storage: Pick<Storage, 'read'>
  documents: DocumentReader
  config: Pick<Config, 'limits'>
}) {
  return {
    /**
     * A request that holds files, with their content. Where a target does not take a file, its text
     * replaces it. Stored files are read with the rights of the principal: `not_found`.
     */
    async load(request: GenerationRequest, options: LoadOptions): Promise<GenerationRequest> {
      const inline = new Map<string, InlineFile>()
      const load = (part: ContentPart) =>
        isLoaded(part) ? loadPart(deps, part, { ...options, request, inline }) : [part]
      const items: GenerationRequest['items'][number][] = []
      for (const item of request.items) {
        if (!('parts' in item)) {
          items.push(item)
          continue
        }
        const parts: ContentPart[] = []
        // One after the other, so that one request holds one content and one reader.
        for (const part of item.parts) parts.push(...(await load(part)))
        items.push({ ...item, parts })
      }
      const { inputCharsMax } = deps.config.limits
      if (countChars(items) > inputCharsMax) throw textTooLong(inputCharsMax)
      const { origin } = request
      if (origin === undefined || inline.size === 0) return { ...request, items }
      return { ...request, items, origin: { ...origin, files: inline } }
    },
  }
}

/** Whether a request has files or stored images, which must be loaded. */
export function holdsFiles({ items }: GenerationRequest): boolean {
  return items.some((item) => 'parts' in item && item.parts.some(isLoaded))
}

function isLoaded(part: ContentPart): part is FilePart | ImagePart {
  return part.type === 'file' || (part.type === 'image' && part.stored !== undefined)
}

type PartContext = LoadOptions & {
  readonly request: GenerationRequest
  /** Receives the stored files for an upstream that gets the original request. */
  readonly inline: Map<string, InlineFile>
}

async function loadPart(
  deps: Parameters<typeof createRequestFiles>[0],
  part: FilePart | ImagePart,
  context: PartContext,
): Promise<readonly ContentPart[]> {
  const { stored } = part
  const file = stored === undefined ? contentOf(part) : await storedContent(deps, stored, context)
  // The upstream fetches a URL itself.
  if (file === null) return [part]
  if (part.type === 'image') return [await loadImage(part, file, context)]
  const { targets, request, capabilities, inline } = context
  const { name, mimeType } = file
  const inBody = request.origin === undefined ? undefined : stored
  const isRelayed = request.origin !== undefined && (stored === undefined || mimeType === pdfType)
  const takes = targets.every((target) => takesFile(target, { mimeType, isRelayed }))
  if (takes && stored === undefined) return [part]
  if (inBody !== undefined && mimeType === pdfType) {
    inline.set(inBody.id, { mimeType, base64: await file.base64() })
  }
  if (takes) {
    const data = `data:${mimeType};base64,${await file.base64()}`
    return [{ type: 'file', data, url: null, filename: name }]
  }
  const canSee = capabilities.includes('vision')
  if (isImage(mimeType) && canSee) return [imagePart(mimeType, await file.base64())]
  const { open, ...content } = file.content()
  const { signal } = context.context
  const document = await deps.documents.read({ name, mimeType, ...content }, open, {
    signal,
    pageImages: canSee,
  })
  const text = describeDocument(name, document)
  if (inBody !== undefined && mimeType !== pdfType) {
    inline.set(inBody.id, { mimeType: 'text/plain', text })
  }
  const images = 'images' in document ? document.images : []
  return [
    { type: 'text', text },
    ...images.flatMap(({ page, base64 }): ContentPart[] => [
      { type: 'text', text: `Page ${page} of ${name}:` },
      imagePart('image/jpeg', base64),
    ]),
  ]
}

function imagePart(mimeType: string, base64: string): ContentPart {
  return { type: 'image', url: `data:${mimeType};base64,${base64}`, detail: null }
}

/** The text of a document, with what it lacks. */
function describeDocument(name: string, document: ReadDocument): string {
  const warnings = document.warnings.map(({ message }) => `[${message}]`)
  const head =
    'text' in document
      ? `Document: ${name}`
      : `[The file ${name} could not be read: ${document.reason}]`
  const text = 'text' in document ? ['', document.text] : []
  return [head, ...warnings, ...text].join('\n')
}

async function loadImage(
  { detail, stored }: ImagePart,
  file: FileContent,
  { request, inline }: PartContext,
): Promise<ContentPart> {
  const { mimeType, name } = file
  if (!isImage(mimeType)) {
    const message = `${stored?.path}: the file ${quote(name)} is not an image`
    throw new AppError(
      'invalid_request',
      message,
      stored === undefined ? {} : { param: stored.path },
    )
  }
  const base64 = await file.base64()
  if (stored !== undefined && request.origin !== undefined)
    inline.set(stored.id, { mimeType, base64 })
  return { type: 'image', url: `data:${mimeType};base64,${base64}`, detail }
}

const pdfType = 'application/pdf'

function isImage(mimeType: string): boolean {
  return /^image\/(jpeg|png|gif|webp)$/.test(mimeType)
}

/** Whether a target takes a file as it is. An upstream of the client's protocol decides itself. */
function takesFile(
  { upstream: { kind, quirks } }: Target,
  { mimeType, isRelayed }: { mimeType: string; isRelayed: boolean },
): boolean {
  if (kind === 'responses' || (kind === 'messages' && isRelayed)) return true
  const isRemote = kind === 'chat' || kind === 'messages'
  return isRemote && quirks.files && mimeType === pdfType
}

/** The content of a file in the request; null for a URL that an upstream fetches. */
function contentOf(part: FilePart | ImagePart): FileContent | null {
  if (part.type === 'image') return null
  const given = part.data ?? part.url ?? ''
  const found = readDataUrl(given)
  if (found === null && part.data === null) return null
  const { mimeType, base64 } = found ?? { mimeType: detectPdf(given), base64: given }
  return {
    name: part.filename ?? 'document',
    mimeType,
    content() {
      const bytes = Buffer.from(base64, 'base64')
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      return { bytes: bytes.length, sha256, open: async () => new Blob([bytes]).stream() }
    },
    base64: async () => base64,
  }
}

/** Bare base64 has no type; the readers detect other formats by themselves. */
function detectPdf(base64: string): string {
  return base64.startsWith('JVBERi0') ? pdfType : 'application/octet-stream'
}

async function storedContent(
  { files, storage, config }: Parameters<typeof createRequestFiles>[0],
  { id, path }: NonNullable<FilePart['stored']>,
  { context }: PartContext,
): Promise<FileContent> {
  const notFound = new AppError('not_found', `${path}: no file has the id ${quote(id)}.`, {
    param: path,
  })
  if (!isUuid(id)) throw notFound
  const record = await files.find(context.principal, id).catch((error: unknown) => {
    throw error instanceof AppError && error.kind === 'not_found' ? notFound : error
  })
  const { bytes, sha256, name, mime_type: mimeType } = record
  const { requestBytesMax } = config.limits
  const open = () => storage.read(sha256)
  return {
    name,
    mimeType,
    content: () => ({ bytes, sha256, open }),
    async base64() {
      if (bytes > requestBytesMax) {
        const message = `${path}: the file ${quote(name)} exceeds the limit of ${requestBytesMax} bytes.`
        throw new AppError('request_too_large', message, { param: path })
      }
      return Buffer.from(await new Response(await open()).arrayBuffer()).toString('base64')
    },
  }
}

function textTooLong(charsMax: number): AppError {
  return new AppError(
    'request_too_large',
    `The text of the input and its files exceeds the limit of ${charsMax} characters.`,
    { param: 'input' },
  )
}
