import { expect } from 'bun:test'
import type { Endpoint } from '#api/endpoint.ts'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { Gateway } from '#test/support/gateway.ts'
import { holdsAsync } from '#test/support/properties.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'
import { type EndpointRequest, type Kind, type KnownIds, requestsOf } from './endpoint-requests.ts'

/** What every answer of every endpoint has in common, whatever the request. */

type Answer = { readonly status: number; readonly headers: Headers; readonly text: string }

export type Checked = {
  readonly gateway: Gateway
  readonly bearer: string
  readonly ids: KnownIds
  /** Must be in no answer. */
  readonly canary: string
  readonly onStatus: (status: number) => void
}

/** Sends requests of a kind to an endpoint. */
export async function checkEndpoint(
  endpoint: Endpoint,
  kind: Kind,
  runs: number,
  checked: Checked,
) {
  const check = async (request: EndpointRequest) => {
    const answer = await send(endpoint, request, checked)
    checked.onStatus(answer.status)
    checkAnswer(endpoint, kind, answer, checked.canary)
  }
  await holdsAsync(requestsOf(endpoint, kind, checked.ids), check, runs)
}

export async function send(
  { method }: Endpoint,
  { path, headers, body }: EndpointRequest,
  { gateway, bearer }: Pick<Checked, 'gateway' | 'bearer'>,
): Promise<Answer> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${bearer}`, ...headers },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
    // Ends what hangs; the time that an answer takes does not matter.
    signal: AbortSignal.timeout(helperTimeoutMs),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function checkAnswer(endpoint: Endpoint, kind: Kind, answer: Answer, canary: string): void {
  const { status, headers, text } = answer
  expect(headers.get('x-request-id')).toMatch(/^req_\w{26}$/)
  expect([...headers].flat().join('\n') + text).not.toContain(canary)
  if (status < 400 || endpoint.method === 'HEAD') return
  expect(status < 500 || mayFail(endpoint, status), `status ${status}: ${text}`).toBeTrue()
  // Otherwise nothing behind the credential would be tested.
  expect(status, text).not.toBe(401)
  const { message, param, code } = errorOf(endpoint.path, answer)
  expect(String(message).length).toBeWithin(1, 1_502)
  if (kind === 'valid') expect(code, text).not.toBe('unknown_field')
  const isInBody = typeof param === 'string' && !endpoint.path.includes(`:${param}`)
  if (isInBody && invalidCodes.has(String(code))) {
    expect(namesField(String(message), param), `${param}: ${message}`).toBeTrue()
  }
}

/** Dependencies that are missing here: engines, sources of models, disk space. */
function mayFail({ errors = {} }: Endpoint, status: number): boolean {
  const kinds = Object.keys(errors)
  if (status === 503)
    return kinds.some((kind) => /unavailable|overloaded|engine|draining/.test(kind))
  if (status === 502 || status === 504) return kinds.some((kind) => kind.startsWith('upstream_'))
  return status === 507
}

/** The error object in the shape of its surface. */
function errorOf(path: string, { headers, text }: Answer): JsonObject {
  const body = asRecord(parseJson(text))
  expect(headers.get('content-type')).toStartWith('application/json')
  if (path === '/v1/listen') {
    expect(Object.keys(body).toSorted()).toEqual(['err_code', 'err_msg', 'request_id'])
    return { code: body['err_code'], message: body['err_msg'] }
  }
  const error = asRecord(body['error'])
  expect(error['message']).toBeString()
  if (!path.startsWith('/compat/')) {
    expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type'])
    return error
  }
  expect([body['type'], body['request_id']]).toEqual(['error', headers.get('x-request-id')])
  const details = asRecord(error['details'])
  return { ...error, ...details, code: details['error_code'] }
}

/** Of values that break a rule; other errors are about a resource that a field names. */
const invalidCodes = new Set(['unprocessable', 'unknown_field', 'invalid_request', 'invalid_value'])

/** Sentences about `previous_response_id` may speak of the previous response. */
function namesField(message: string, param: string): boolean {
  const steps = param.split(/[.[\]]/).filter((step) => /\D/.test(step))
  const words = (steps.at(-1) ?? '').toLowerCase().slice(0, 40).split('_')
  return words.some((word) => message.toLowerCase().includes(word))
}

/** Deletions last, so that the other requests find what exists. */
export function inOrder(endpoints: readonly Endpoint[]): [place: string, endpoint: Endpoint][] {
  const isLast = ({ method, path }: Endpoint) => method === 'DELETE' || path.endsWith('/cancel')
  return endpoints
    .toSorted((one, other) => Number(isLast(one)) - Number(isLast(other)))
    .map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint])
}

export const isAdministrative = ({ permission }: Endpoint) =>
  permission !== 'can_access_api' && permission !== 'public'
