import { type BodyLimits, readJsonText } from '#http/body.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type BatchError, type LinePath, messagesPath } from './batches.ts'
import type { InputLine } from './input-lines.ts'

/** Those of a request body. */
export type LineLimits = Pick<BodyLimits, 'requestBytesMax' | 'jsonDepthMax'>

export type ValidLine = { readonly customId: string; readonly body: JsonObject }

const customIdCharsMax = 256

/** The request of a line, or why it has none. */
export function readLine(
  { content, line }: InputLine,
  endpoint: LinePath,
  limits: LineLimits,
): ValidLine | BatchError {
  const refuse = (code: string, message: string, param: string | null = null): BatchError => {
    return { code, message, param, line }
  }
  if (content === null) {
    const message = `The line exceeds the limit of ${limits.requestBytesMax} bytes.`
    return refuse('line_too_long', message)
  }
  const value = parseChecked(content, limits)
  if (!isRecord(value)) {
    return refuse('invalid_json_line', 'The line is not a JSON object in UTF-8.')
  }
  const { custom_id: customId, method, url } = value
  const problem = problemOfCustomId(customId)
  if (problem !== null) return refuse('invalid_custom_id', `custom_id ${problem}.`, 'custom_id')
  const id = String(customId)
  // The body that held these requests was validated; what each lacks is its own result.
  if (endpoint === messagesPath) return { customId: id, body: asRecord(value['params']) }
  const { body } = value
  if (method !== 'POST') return refuse('invalid_method', 'method must be POST.', 'method')
  if (url !== endpoint) {
    return refuse('invalid_url', `url must be the endpoint of the batch, ${endpoint}.`, 'url')
  }
  if (!isRecord(body)) return refuse('invalid_body', 'body must be an object.', 'body')
  for (const field of ['stream', 'background']) {
    if (body[field] !== true) continue
    const param = `body.${field}`
    return refuse('invalid_body', `${param} must not be true in a batch.`, param)
  }
  if (typeof body['model'] !== 'string' || body['model'] === '') {
    return refuse('missing_required_parameter', 'body.model is required.', 'body.model')
  }
  return { customId: id, body }
}

export function duplicateId(customId: string, line: number): BatchError {
  const message = `custom_id ${JSON.stringify(customId)} is used by an earlier line.`
  return { code: 'duplicate_custom_id', message, param: 'custom_id', line }
}

/** Undefined for invalid UTF-8 or JSON, or for too many levels. */
function parseChecked(content: Uint8Array, limits: LineLimits): unknown {
  try {
    return readJsonText(decoder.decode(content), limits, 'The line')
  } catch {
    return undefined
  }
}

/** The value of a line that was validated. */
export function parseLine(content: Uint8Array): unknown {
  return parseJson(decoder.decode(content))
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Completes the sentence "custom_id …". */
function problemOfCustomId(customId: unknown): string | null {
  if (typeof customId !== 'string' || customId === '') return 'must be a non-empty string'
  if (customId.length > customIdCharsMax) return `may have ${customIdCharsMax} characters`
  // No database takes a NUL or a lone surrogate.
  if (!customId.isWellFormed() || customId.includes('\0')) return 'must be well-formed text'
  return null
}
