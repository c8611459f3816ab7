import { readLongBody } from '#http/long-body.ts'
import { readMultipart } from '#http/multipart.ts'
import { AppError } from '#lib/errors.ts'
import { logoBytesMax, unsupportedImageType } from './image.ts'

const deadlines = { gapMs: 30_000, totalMs: 120_000 }
/** Multipart overhead. */
const formOverheadBytesMax = 65_536
const formLimits = { fieldsMax: 4, fieldBytesMax: 1_024, filesMax: 1, ...deadlines }
const fileFields: ReadonlySet<string> = new Set(['file', 'logo'])

/**
 * Reads a logo from a form or a raw body, and stops at the size limit. Throws an `AppError` of status
 * 413, 415 or 422.
 */
export async function receiveLogo(request: Request): Promise<Uint8Array> {
  const type = (request.headers.get('content-type') ?? '').toLowerCase()
  const isForm = type.startsWith('multipart/')
  const contentLength = Number(request.headers.get('content-length') ?? 0)
  if (contentLength > logoBytesMax + (isForm ? formOverheadBytesMax : 0)) throw tooLarge()
  if (isForm) return receiveForm(request)
  if (!type.startsWith('image/')) throw unsupportedImageType()
  return collect(readLongBody(request, deadlines))
}

async function receiveForm(request: Request): Promise<Uint8Array> {
  const { fields, files } = await readMultipart(request, formLimits, async ({ field }, bytes) => {
    if (fileFields.has(field)) return collect(bytes)
    throw unknownField(field)
  })
  const [field] = fields.keys()
  if (field !== undefined && !fileFields.has(field)) throw unknownField(field)
  const [file] = files
  if (file !== undefined) return file.taken
  throw new AppError('unprocessable', 'The form has no file; send it as "file".', { param: 'file' })
}

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of bytes) {
    length += chunk.length
    if (length > logoBytesMax) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

function unknownField(field: string): AppError {
  const sentence = `Unknown form field "${field}"; send the logo as "file".`
  return new AppError('unknown_field', sentence, { param: field })
}

function tooLarge(): AppError {
  return new AppError('request_too_large', `A logo may have at most ${logoBytesMax} bytes.`, {
    param: 'file',
    code: 'logo_too_large',
  })
}
