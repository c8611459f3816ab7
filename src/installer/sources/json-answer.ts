import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'
import type { Origin, OriginRequest } from './origin.ts'

/** Of descriptions: lists of files, manifests. */
const answerBytesMax = 8 * 1024 * 1024

export type JsonAnswer = {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  /** Undefined where the answer is a refusal, whose body is nobody's business. */
  readonly value: unknown
}

/** Asks for something that is described in JSON; a success whose body is none is a failure. */
export async function askJson(
  origin: Origin,
  url: URL,
  request: Pick<OriginRequest, 'headers' | 'signal'>,
): Promise<JsonAnswer> {
  const headers = { accept: 'application/json', ...request.headers }
  const answer = await origin.read(url, { ...request, headers, bytesMax: answerBytesMax })
  const { status, bytes } = answer
  const value = status === 200 ? parseJson(new TextDecoder().decode(bytes)) : undefined
  if (status === 200 && value === undefined) {
    throw new AppError('upstream_invalid_answer', 'The source answered with something unreadable.')
  }
  return { status, headers: answer.headers, bytes, value }
}
