import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { ApiDocument, Operation } from './api-document.ts'
import type { Gateway } from './gateway.ts'

type Sent = {
  /** Values of the path parameters. `id` stands for those that are absent. */
  path?: Record<string, string>
  query?: Record<string, string>
  json?: unknown
  body?: FormData | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  /** The expected status; by default any success. */
  status?: number
}

/**
 * Calls operations by method and path, and throws if the traffic does not conform to the document.
 */
export type ConformingClient = {
  call(place: string, sent?: Sent): Promise<JsonObject>
}

export function createConformingClient(
  gateway: Gateway,
  { document, headers }: { document: ApiDocument; headers: Record<string, string> },
): ConformingClient {
  return {
    async call(place, sent = {}) {
      const operation = document.operations.find((one) => one.place === place)
      if (operation === undefined) throw new Error(`the document has no ${place}`)
      const jsonType = sent.json === undefined ? {} : { 'content-type': 'application/json' }
      const httpResponse = await fetch(gateway.url + fillPath(operation, sent), {
        method: operation.method,
        headers: { ...headers, ...jsonType, ...sent.headers },
        ...(sent.json === undefined ? {} : { body: JSON.stringify(sent.json) }),
        ...(sent.body === undefined ? {} : { body: sent.body }),
      })
      const text = await httpResponse.text()
      const isExpected =
        sent.status === undefined ? httpResponse.ok : httpResponse.status === sent.status
      if (!isExpected) throw new Error(`${place} answered ${httpResponse.status}: ${text}`)
      const documented = [
        ...(httpResponse.ok ? requestFaults(document, operation, sent.json) : []),
        ...answerFaults(document, operation, { answer: httpResponse, text }),
      ]
      if (documented.length > 0)
        throw new Error(`${place}, ${httpResponse.status}:\n${documented.join('\n')}\n${text}`)
      return asRecord(parseJson(text))
    },
  }
}

function fillPath({ path }: Operation, { path: values = {}, query = {} }: Sent): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(values[name] ?? values['id'] ?? `no-${name}`),
  )
  return `${filled}?${new URLSearchParams(query)}`
}

function requestFaults(document: ApiDocument, { said }: Operation, json: unknown): string[] {
  if (json === undefined) return []
  const content = asRecord(asRecord(said['requestBody'])['content'])['application/json']
  if (content === undefined) return ['no JSON body is described']
  return faultsWithin(document, asRecord(content)['schema'], json).map((fault) => `sent ${fault}`)
}

function answerFaults(
  document: ApiDocument,
  { said }: Operation,
  { answer, text }: { answer: Response; text: string },
): string[] {
  const described = document.resolve(asRecord(said['responses'])[String(answer.status)])
  if (described === undefined) return ['this status is not described']
  const type = (answer.headers.get('content-type') ?? '').replace(/;.*$/, '')
  const contents = asRecord(asRecord(described)['content'])
  if (text === '') return Object.keys(contents).length === 0 ? [] : ['a body is described']
  const content = contents[type] ?? contents['*/*']
  if (content === undefined) return [`the type ${type} is not described`]
  if (type !== 'application/json') return []
  return faultsWithin(document, asRecord(content)['schema'], parseJson(text))
}

/** What the schema rejects, or the fields that it does not document. */
function faultsWithin(document: ApiDocument, schema: unknown, value: unknown): string[] {
  const faults = document.faultsOf(schema, value)
  return faults.length > 0 ? faults : undocumentedFields(document, { schema, value, at: '#' })
}

type SchemaValue = { schema: unknown; value: unknown; at: string }

function undocumentedFields(document: ApiDocument, { schema, value, at }: SchemaValue): string[] {
  if (typeof value !== 'object' || value === null) return []
  const shapes = shapesOf(document, schema, value)
  const items = shapes.map((shape) => shape['items']).filter((one) => one !== undefined)
  if (Array.isArray(value)) {
    const parts = items.length === 0 ? [] : value
    return parts.flatMap((item, index) =>
      undocumentedFields(document, { schema: { anyOf: items }, value: item, at: `${at}/${index}` }),
    )
  }
  // A map or an open object allows any field.
  if (shapes.some(isOpen)) return []
  return Object.entries(value).flatMap(([name, field]) => {
    const documented = shapes.flatMap((shape) => asRecord(shape['properties'])[name] ?? [])
    const place = `${at}/${name}`
    if (documented.length === 0) return [`${place}: the document does not tell of this field`]
    return undocumentedFields(document, { schema: { anyOf: documented }, value: field, at: place })
  })
}

function isOpen(shape: JsonObject): boolean {
  const { properties, additionalProperties: more, patternProperties, type } = shape
  if (patternProperties !== undefined || (more !== undefined && more !== false)) return true
  return properties === undefined && type !== 'array'
}

/** The non-union schemas that apply to a value. */
function shapesOf(document: ApiDocument, schema: unknown, value: unknown): JsonObject[] {
  const { anyOf, oneOf, allOf, ...own } = asRecord(document.resolve(schema))
  const union = [anyOf, oneOf].flatMap((branches) => (Array.isArray(branches) ? branches : []))
  const parts = [
    ...union.filter((branch) => document.faultsOf(branch, value).length === 0),
    ...(Array.isArray(allOf) ? allOf : []),
  ]
  const shapes = parts.flatMap((part) => shapesOf(document, part, value))
  return parts.length === 0 || 'properties' in own ? [own, ...shapes] : shapes
}
