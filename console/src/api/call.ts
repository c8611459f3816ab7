import { credential } from '../session/credential.ts'
import { ApiError, readError, unreachable } from './errors.ts'
import type { Operations } from './generated/operations.ts'

export type OperationName = keyof Operations
/** Path, query and body of an operation, as the API document describes them. */
export type RequestOf<Name extends OperationName> = Omit<Operations[Name]['data'], 'url'>
export type ResponseOf<Name extends OperationName> = Operations[Name]['response']

type Extras = {
  readonly signal?: AbortSignal | undefined
  readonly headers?: Record<string, string>
}
type Given = { body?: unknown; path?: unknown; query?: unknown; headers?: unknown }
type Value = string | number | boolean

/** Calls an operation by its method and path, and returns its JSON. Throws an `ApiError`. */
export async function call<Name extends OperationName>(
  name: Name,
  request: RequestOf<Name> & Extras = {} as RequestOf<Name>,
): Promise<ResponseOf<Name>> {
  return (await callTagged(name, request)).data
}

/** The same with the entity tag of the response, for `if-match`. */
export async function callTagged<Name extends OperationName>(
  name: Name,
  request: RequestOf<Name> & Extras = {} as RequestOf<Name>,
): Promise<{ data: ResponseOf<Name>; tag: string | null }> {
  const { signal, headers, ...given } = request as Given & Extras
  const response = await send(name, given, { signal, ...(headers && { headers }) })
  const data = response.status === 204 ? undefined : await response.json()
  return { data: data as ResponseOf<Name>, tag: response.headers.get('etag') }
}

/** The same for streams and files. The status is a success. */
export async function send(
  name: OperationName,
  { body, path, query }: Given,
  { signal, headers = {} }: Extras = {},
): Promise<Response> {
  const [method = 'GET', template = '/'] = name.split(' ')
  const url = addressOf(template, path as Record<string, Value> | undefined, query)
  const isRaw = body instanceof Blob || body instanceof FormData
  const response = await fetch(url, {
    method,
    signal: signal ?? null,
    headers: {
      ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
      ...credential.headers(method),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw unreachable()
  })
  if (response.ok) return response
  const error = await readError(response)
  if (error.status === 401) credential.expired()
  throw error
}

/** The URL of an operation; parameters that are undefined or empty are left out. */
function addressOf(
  template: string,
  path: Record<string, Value> = {},
  query: unknown = undefined,
): string {
  const place = template.replace(/\{(\w+)\}/g, (_, key: string) =>
    encodeURIComponent(String(path[key])),
  )
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries((query ?? {}) as Record<string, unknown>)) {
    if (value === undefined || value === '' || value === null) continue
    search.set(key, Array.isArray(value) ? value.join(',') : String(value))
  }
  return search.size === 0 ? place : `${place}?${search}`
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}

/** The sentence of any failure, for a person. */
export function messageOf(error: unknown): string {
  return error instanceof ApiError || error instanceof Error ? error.message : String(error)
}
