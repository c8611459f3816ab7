import { expect } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Gateway } from './gateway.ts'

export type ReadFailure = {
  status: number
  code: string
  type: string
  message: string
  param: unknown
  headers: Headers
  /** Everything that the client could see. */
  seen: string
}

/**
 * The error of a failed response, after validating what all errors share: JSON in the shape of its
 * surface, and a request id that is also in a log line.
 */
export async function readFailure(answer: Response, gateway: Gateway): Promise<ReadFailure> {
  const text = await answer.text()
  expect(answer.headers.get('content-type') ?? '').toStartWith('application/json')
  const requestId = answer.headers.get('x-request-id') ?? ''
  // The header is of that surface alone, so an answer of it without one fails as the other's.
  const { code, type, message, param } = answer.headers.has('request-id')
    ? readMessagesError(text, answer.headers)
    : readError(text)
  for (const word of [code, type, message]) expect(typeof word).toBe('string')
  expect(answer.headers.get('x-should-retry')).toBeOneOf(['true', 'false'])
  expect(requestId).toMatch(/^req_\w{26}$/)
  expect(logOf(gateway, requestId).map(({ status }) => status)).toContain(answer.status)
  return {
    status: answer.status,
    code: String(code),
    type: String(type),
    message: String(message),
    param,
    headers: answer.headers,
    seen: [...answer.headers].flat().join('\n') + text,
  }
}

function readError(text: string): JsonObject {
  const body: unknown = JSON.parse(text)
  if (isRecord(body) && 'err_code' in body) {
    expect(Object.keys(body).toSorted(), text).toEqual(['err_code', 'err_msg', 'request_id'])
    return { code: body['err_code'], type: 'listen_error', message: body['err_msg'], param: null }
  }
  const error = isRecord(body) && isRecord(body['error']) ? body['error'] : {}
  expect(Object.keys(Object(body)), text).toEqual(['error'])
  expect(Object.keys(error).toSorted(), text).toEqual(['code', 'message', 'param', 'type'])
  return error
}

/** The shape of the Messages protocol, with the request id in the body and in its own header. */
function readMessagesError(text: string, headers: Headers): JsonObject {
  const body: JsonObject = JSON.parse(text)
  expect(Object.keys(body).toSorted(), text).toEqual(['error', 'request_id', 'type'])
  expect(body['type']).toBe('error')
  expect<unknown>(body['request_id']).toBe(headers.get('x-request-id'))
  expect(headers.get('request-id')).toBe(headers.get('x-request-id'))
  const error = isRecord(body['error']) ? body['error'] : {}
  expect(Object.keys(error).toSorted(), text).toEqual(['details', 'message', 'type'])
  const details = isRecord(error['details']) ? error['details'] : {}
  return { ...error, code: details['error_code'], param: null }
}

/** The log lines of one request. */
export function logOf(gateway: Gateway, requestId: string): JsonObject[] {
  return gateway.logLines
    .map((line): unknown => JSON.parse(line))
    .filter(isRecord)
    .filter((line) => line['request_id'] === requestId)
}
