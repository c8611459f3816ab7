import { expect } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Gateway } from './gateway.ts'

export type Told = {
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
 * The failure that an HTTP answer tells of, after the checks that hold for every one of them: JSON
 * with exactly four keys, and a request id that stands in a log line too.
 */
export async function readFailure(answer: Response, gateway: Gateway): Promise<Told> {
  const text = await answer.text()
  expect(answer.headers.get('content-type') ?? '').toStartWith('application/json')
  const body: unknown = JSON.parse(text)
  const error = isRecord(body) && isRecord(body['error']) ? body['error'] : {}
  expect(Object.keys(Object(body)), text).toEqual(['error'])
  expect(Object.keys(error).toSorted(), text).toEqual(['code', 'message', 'param', 'type'])
  const { code, type, message, param } = error
  for (const word of [code, type, message]) expect(typeof word).toBe('string')
  const requestId = answer.headers.get('x-request-id') ?? ''
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

/** The log lines of one request. */
export function logOf(gateway: Gateway, requestId: string): JsonObject[] {
  return gateway.logLines
    .map((line): unknown => JSON.parse(line))
    .filter(isRecord)
    .filter((line) => line['request_id'] === requestId)
}
