import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import { AppError, toAppError } from '#lib/errors.ts'
import { type BodyDeadlines, readLongBody } from './long-body.ts'

/** Limits of `multipart/form-data`; fields other than files are small. */
export type MultipartLimits = BodyDeadlines & {
  readonly fieldsMax: number
  readonly fieldBytesMax: number
  readonly filesMax: number
}

export type FilePart = {
  readonly field: string
  readonly filename: string | null
  /** As sent by the client; not verified. */
  readonly mimeType: string
}

export type Multipart<T> = {
  /** The last value of each field. */
  readonly fields: ReadonlyMap<string, string>
  /** All values of each field, in order. */
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly files: readonly { readonly part: FilePart; readonly taken: T }[]
}

/** The limit of a part name, a file name, and the headers of a part. */
const headerBytesMax = 16_384

/**
 * Streams a form with backpressure: each file goes to `take`, one after the other, without being
 * buffered. If `take` returns before the end of its stream, the rest is discarded.
 *
 * Throws `invalid_request` for an invalid or incomplete form, `request_too_large` above a limit, and
 * the errors of `readLongBody` and `take`.
 */
export async function readMultipart<T>(
  request: Request,
  limits: MultipartLimits,
  take: (part: FilePart, bytes: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<Multipart<T>> {
  const fields = new Map<string, string>()
  const values = new Map<string, string[]>()
  const files: { part: FilePart; taken: T }[] = []
  const parser = openParser(request, limits)
  const flow = createFlow(parser)
  const { failed, fail } = flow
  const takings: Promise<void>[] = []
  const streams: BusboyFileStream[] = []
  let fileField: string | undefined

  parser.on('field', (name, value, _nameCut, valueCut) => {
    if (valueCut) fail(tooLarge(`The field "${name}" is too long.`, name))
    fields.set(name, value)
    values.set(name, [...(values.get(name) ?? []), value])
  })
  parser.on('file', (field, stream, filename, _encoding, mimeType) => {
    const part = { field, filename: filename ?? null, mimeType }
    fileField = field
    // The reader gets the error; it may occur before the stream is read.
    stream.on('error', () => {})
    streams.push(stream)
    takings.push(takeFile(part, stream))
  })
  parser.on('fieldsLimit', () => fail(tooLarge('The form has too many fields.')))
  parser.on('filesLimit', () => fail(tooLarge('The form has too many files.', fileField)))
  parser.on('partsLimit', () => fail(tooLarge('The form has too many parts.')))
  parser.on('error', (cause) => fail(malformed(cause)))

  async function takeFile(part: FilePart, stream: BusboyFileStream): Promise<void> {
    try {
      files.push({ part, taken: await take(part, stream) })
    } catch (error) {
      fail(error)
    } finally {
      // An unread stream would block the rest of the form.
      stream.resume()
    }
  }

  const finished = new Promise<void>((resolve) => parser.on('finish', () => resolve()))
  try {
    await feed(readLongBody(request, limits), parser, flow)
    await Promise.race([finished, failed])
    await Promise.race([Promise.all(takings), failed])
  } catch (error) {
    parser.destroy()
    // The parser leaves them open, and their readers would wait forever.
    for (const stream of streams) stream.destroy(toAppError(error))
    await Promise.allSettled(takings)
    throw error
  }
  return { fields, values, files }
}

function openParser(request: Request, limits: MultipartLimits): BusboyInstance {
  const contentType = request.headers.get('content-type') ?? ''
  if (!contentType.toLowerCase().startsWith('multipart/form-data')) {
    throw new AppError('invalid_request', 'Send the file as multipart/form-data.')
  }
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: {
        fieldNameSize: headerBytesMax,
        fieldSize: limits.fieldBytesMax,
        fields: limits.fieldsMax,
        files: limits.filesMax,
        parts: limits.fieldsMax + limits.filesMax,
        headerSize: headerBytesMax,
      },
    })
  } catch (cause) {
    throw malformed(cause)
  }
}

type Flow = {
  /** Rejects with the first error. */
  readonly failed: Promise<never>
  fail(error: unknown): void
  hasFailed(): boolean
  /** Resolves when the parser accepts more data, or has failed. */
  drained(): Promise<void>
}

/** One listener for the whole form: a long file pauses the parser thousands of times. */
function createFlow(parser: BusboyInstance): Flow {
  const { promise: failed, reject } = Promise.withResolvers<never>()
  failed.catch(() => {})
  let hasFailed = false
  let goOn = () => {}
  parser.on('drain', () => goOn())
  return {
    failed,
    fail(error) {
      hasFailed = true
      reject(error)
      goOn()
    },
    hasFailed: () => hasFailed,
    drained: () =>
      new Promise((resolve) => {
        goOn = resolve
      }),
  }
}

/** Writes the body into the parser with backpressure. */
async function feed(
  body: AsyncIterable<Uint8Array>,
  parser: BusboyInstance,
  flow: Flow,
): Promise<void> {
  for await (const chunk of body) {
    if (!parser.write(chunk) && !flow.hasFailed()) await flow.drained()
    if (flow.hasFailed()) await flow.failed
  }
  parser.end()
}

function tooLarge(sentence: string, param?: string): AppError {
  return new AppError('request_too_large', sentence, param === undefined ? {} : { param })
}

function malformed(cause: unknown): AppError {
  return new AppError('invalid_request', 'The body is not a complete multipart form.', { cause })
}
