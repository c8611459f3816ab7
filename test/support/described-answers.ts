import { type Schema, Validator } from '@cfworker/json-schema'
import { asRecord, isRecord } from '#lib/json.ts'

/** What a route was built with, as far as it says what it answers. */
type Route = { method: string; path: string; hooks?: { detail?: unknown } }

/**
 * Holds real answers against what their routes say of them: the status must be told of, and a JSON
 * body must have all that its schema demands and nothing that it does not name.
 */
export function describedAnswers(routes: readonly Route[]) {
  /** Throws where the answer is not as its route says; `how` is a method and a path. */
  return function holdAgainst(how: string, status: number, body: unknown): void {
    const faults = faultsOf(detailOf(routes, how), status, body)
    if (faults.length > 0) throw new Error(`${how} answers ${status}: ${faults.join('; ')}`)
  }
}

function faultsOf(detail: unknown, status: number, body: unknown): string[] {
  const answer = asRecord(asRecord(detail)['responses'])[status]
  if (!isRecord(answer)) return ['a status that is not told of']
  const { schema } = asRecord(asRecord(answer['content'])['application/json'])
  // A body in another form than JSON is not looked at.
  if (schema === undefined || body === undefined) return []
  if (status >= 400) return exampleFaults(asRecord(answer['content']), body)
  return schemaFaults(schema, body)
}

/** By the schema, with no field beside those that it names. */
export function schemaFaults(schema: unknown, body: unknown): string[] {
  const validator = new Validator(closed(JSON.parse(JSON.stringify(schema))), '2020-12', false)
  return validator
    .validate(body)
    .errors.map(({ instanceLocation, error }) => `${instanceLocation} ${error}`)
}

/** The code of a failure must be one of those that are told of. */
function exampleFaults(content: Record<string, unknown>, body: unknown): string[] {
  const { examples } = asRecord(content['application/json'])
  const { code } = asRecord(asRecord(body)['error'])
  const codes = Object.values(asRecord(examples)).map(
    (example) => asRecord(asRecord(asRecord(example)['value'])['error'])['code'],
  )
  return codes.includes(code) ? [] : [`the code ${code} is not told of`]
}

function detailOf(routes: readonly Route[], how: string): unknown {
  const [method, url = ''] = how.split(' ')
  const { pathname } = new URL(url, 'http://gateway')
  const fitting = routes
    .filter((route) => route.method === method && formOf(route.path).test(pathname))
    .toSorted((one, other) => paramsIn(one.path) - paramsIn(other.path))
  return fitting[0]?.hooks?.detail
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
