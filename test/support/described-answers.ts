import { type Schema, Validator } from '@cfworker/json-schema'
import type { Endpoint } from '#api/endpoint.ts'
import { describeEndpoint } from '#docs/describe-endpoint.ts'
import { asRecord, isRecord } from '#lib/json.ts'

/**
 * Validates responses against the document of their routes: the status must be documented, and a
 * JSON body must conform to its schema without further fields.
 */
export function describedAnswers(endpoints: readonly Endpoint[]) {
  /** Throws unless the response conforms to its route; `how` is a method and a path. */
  return function holdAgainst(how: string, status: number, body: unknown): void {
    const faults = faultsOf(detailOf(endpoints, how), status, body)
    if (faults.length > 0) throw new Error(`${how} answers ${status}: ${faults.join('; ')}`)
  }
}

function faultsOf(detail: unknown, status: number, body: unknown): string[] {
  const answer = asRecord(asRecord(detail)['responses'])[status]
  if (!isRecord(answer)) return ['an undocumented status']
  const { schema } = asRecord(asRecord(answer['content'])['application/json'])
  // Only JSON bodies are validated.
  if (schema === undefined || body === undefined) return []
  if (status >= 400) return exampleFaults(asRecord(answer['content']), body)
  return schemaFaults(schema, body)
}

/** By the schema, without undocumented fields. */
export function schemaFaults(schema: unknown, body: unknown): string[] {
  const validator = new Validator(closed(JSON.parse(JSON.stringify(schema))), '2020-12', false)
  return validator
    .validate(body)
    .errors.map(({ instanceLocation, error }) => `${instanceLocation} ${error}`)
}

/** The code of an error must be documented. */
function exampleFaults(content: Record<string, unknown>, body: unknown): string[] {
  const { examples } = asRecord(content['application/json'])
  const { code } = asRecord(asRecord(body)['error'])
  const codes = Object.values(asRecord(examples)).map(
    (example) => asRecord(asRecord(asRecord(example)['value'])['error'])['code'],
  )
  return codes.includes(code) ? [] : [`the code ${code} is undocumented`]
}

function detailOf(endpoints: readonly Endpoint[], how: string): unknown {
  const [method, url = ''] = how.split(' ')
  const { pathname } = new URL(url, 'http://gateway')
  const fitting = endpoints
    .filter((route) => route.method === method && formOf(route.path).test(pathname))
    .toSorted((one, other) => paramsIn(one.path) - paramsIn(other.path))
  return fitting[0] && describeEndpoint(fitting[0])
}

function formOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\/$/, '').replace(/:\w+/g, '[^/]+')}/?$`)
}

function paramsIn(path: string): number {
  return path.split(':').length
}

function closed(schema: unknown): Schema {
  if (Array.isArray(schema)) return schema.map(closed) as Schema
  if (!isRecord(schema)) return schema as Schema
  const { $id: _, ...own } = schema
  const inner = Object.fromEntries(Object.entries(own).map(([key, value]) => [key, closed(value)]))
  return isRecord(schema['properties']) ? { additionalProperties: false, ...inner } : inner
}
