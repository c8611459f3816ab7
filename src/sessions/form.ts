import { AppError } from '#lib/errors.ts'

/** Forms of this feature have a few short fields. */
const formBytesMax = 65_536

/** The fields of a body of `application/x-www-form-urlencoded`. */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.length
    if (length > formBytesMax) {
      throw new AppError('request_too_large', `The form is larger than ${formBytesMax} bytes.`)
    }
    chunks.push(chunk)
  }
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (length > 0 && type !== 'application/x-www-form-urlencoded') {
    throw new AppError(
      'unsupported_media_type',
      'The body must be a form (application/x-www-form-urlencoded).',
    )
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}
