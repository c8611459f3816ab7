import type { TSchema } from '@sinclair/typebox'
import fc from 'fast-check'
import type { Endpoint } from '#api/endpoint.ts'
import { isRecord } from '#lib/json.ts'
import { arbitraryOf, brokenBodies, hostileText, spoilt } from './hostile-values.ts'

/** Requests to an endpoint, made from its own declaration. */

export type EndpointRequest = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer> | undefined
}

export type Kind = 'valid' | 'spoilt' | 'broken'

/** Ids that exist: of the caller and of another user, by the resource before them in a path. */
export type KnownIds = Readonly<Record<string, readonly string[]>>

const json = { 'content-type': 'application/json' }

export function requestsOf(
  endpoint: Endpoint,
  kind: Kind,
  ids: KnownIds,
): fc.Arbitrary<EndpointRequest> {
  return fc
    .record({
      path: pathOf(endpoint, kind, ids),
      query: queryOf(endpoint, kind),
      content: contentOf(endpoint, kind, ids),
    })
    .map(({ path, query, content }) => ({ path: path + query, ...content }))
}

/** The resource whose id is the first parameter of the path. */
export function resourceOf({ path }: Endpoint): string | undefined {
  const steps = path.split('/').slice(1)
  return resourceAt(
    steps,
    steps.findIndex((step) => step.startsWith(':')),
  )
}

/** The part before a parameter. The batches of one surface are none of the other. */
function resourceAt(steps: readonly string[], index: number): string | undefined {
  const name = steps[index - 1]
  return name === 'batches' && steps[index - 2] === 'messages' ? 'message_batches' : name
}

/** Valid requests to an endpoint for the resource with this id. */
export function requestsFor(
  endpoint: Endpoint,
  id: string,
  ids: KnownIds,
): fc.Arbitrary<EndpointRequest> {
  const path = endpoint.path.replaceAll(/:\w+|\*/g, id)
  return contentOf(endpoint, 'valid', ids).map((content) => ({ path, ...content }))
}

function pathOf({ path }: Endpoint, kind: Kind, ids: KnownIds): fc.Arbitrary<string> {
  const steps = path.split('/').slice(1)
  const parts = steps.map((step, index) => {
    if (!step.startsWith(':') && step !== '*') return fc.constant(step)
    const known = ids[resourceAt(steps, index) ?? ''] ?? []
    const existing = fc.constantFrom(...known, '0198a000-0000-7000-8000-000000000000')
    if (kind === 'valid') return existing
    return fc.oneof(
      { weight: 3, arbitrary: existing },
      hostileText.map((text) => encode(text.slice(0, queryCharsMax))),
      fc.constantFrom('%00', '%', '%ff', '%2e%2e', '%2F', '..%2f..', 'x'.repeat(3_000)),
    )
  })
  return fc.tuple(...parts).map((texts) => `/${texts.join('/')}`)
}

/** An empty step would be another path. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()) || '_'
}

/** A longer request line is refused by the server itself, with status 431. */
const queryCharsMax = 200

function queryOf({ query }: Endpoint, kind: Kind): fc.Arbitrary<string> {
  if (query === undefined) return fc.constant('')
  const schema: TSchema =
    'read' in query && typeof query['read'] === 'function'
      ? (query['schema'] as TSchema)
      : (query as TSchema)
  const values = arbitraryOf(schema).map((value) => Object.entries(Object(value)))
  if (kind === 'valid') return values.map(render)
  const names = Object.keys(schema['properties'] ?? {})
  const short = hostileText.map((text) => text.slice(0, queryCharsMax))
  const pair = fc.tuple(fc.oneof(fc.constantFrom(...names, 'x'), short), short)
  return fc
    .tuple(values, fc.array(pair, { maxLength: 3 }))
    .map(([valid, more]) => render([...valid, ...more]))
}

function render(pairs: readonly (readonly [string, unknown])[]): string {
  const texts = pairs.flatMap(([name, value]) =>
    [value]
      .flat()
      .map((one) => `${encode(name)}=${encodeURIComponent(String(one).toWellFormed())}`),
  )
  return texts.length === 0 ? '' : `?${texts.join('&')}`
}

type Content = Omit<EndpointRequest, 'path'>

function contentOf({ method, body }: Endpoint, kind: Kind, ids: KnownIds): fc.Arbitrary<Content> {
  if (method === 'GET' || method === 'HEAD') {
    if (kind !== 'broken') return fc.constant({ headers: {}, body: undefined })
    return brokenBodies(fc.constant({})).map(({ headers }) => {
      const { 'content-type': _, 'content-encoding': __, ...rest } = headers
      return { headers: rest, body: undefined }
    })
  }
  if (body === undefined) return fc.constant({ headers: {}, body: undefined })
  if (body.kind === 'raw') return formOf(body.content['multipart/form-data']?.schema, kind)
  const values = withKnown(arbitraryOf(body.schema), ids)
  if (kind === 'broken') return brokenBodies(values)
  return (kind === 'valid' ? values : spoilt(values)).map((value) => ({
    headers: json,
    body: JSON.stringify(value) ?? 'null',
  }))
}

/** Names of models and ids of files and collections that exist, so that the request gets further. */
function withKnown(values: fc.Arbitrary<unknown>, ids: KnownIds): fc.Arbitrary<unknown> {
  const pick = fc.record({
    model: fc.constantFrom('demo-fast', 'demo', 'local-hash'),
    file: fc.constantFrom(...(ids['files'] ?? ['x'])),
    collection: fc.constantFrom(...(ids['collections'] ?? ['x'])),
    isKept: fc.boolean(),
  })
  return fc.tuple(values, pick).map(([value, { model, file, collection, isKept }]) => {
    if (!isRecord(value) || isKept) return value
    const known = {
      model,
      embedding_model: 'local-hash',
      file_id: file,
      file_ids: [file],
      collections: [collection],
      stream: false,
      background: false,
    }
    const named = Object.entries(known).filter(([name]) => name in value)
    return { ...value, ...Object.fromEntries(named) }
  })
}

/** A form with the declared fields and a file; where it may be broken, at any place. */
function formOf(schema: TSchema | undefined, kind: Kind): fc.Arbitrary<Content> {
  const properties: Record<string, TSchema> = schema?.['properties'] ?? {}
  const [fileField = 'file'] =
    Object.entries(properties).find(([, { format }]) => format === 'binary') ?? []
  const names = Object.keys(properties).filter((name) => name !== fileField)
  const value = kind === 'valid' ? fc.constantFrom('demo-fast', 'json', 'a') : hostileText
  const known = fc.constantFrom(...(names.length === 0 ? [fileField] : names))
  const name = kind === 'valid' ? known : fc.oneof({ weight: 4, arbitrary: known }, hostileText)
  const field = fc.tuple(name, value)
  return fc
    .record({
      fields: fc.array(field, { maxLength: kind === 'valid' && names.length === 0 ? 0 : 4 }),
      file: fc.uint8Array({ maxLength: 64 }),
      filename: kind === 'valid' ? fc.constantFrom('a.txt', 'b.wav') : hostileText,
      cut: fc.nat(),
      isRaw: fc.boolean(),
    })
    .map(({ fields, file, filename, cut, isRaw }) => {
      if (isRaw && kind === 'broken') {
        return { headers: { 'content-type': 'image/svg+xml' }, body: new Uint8Array(file) }
      }
      const parts = fields.map(
        ([name, text]) =>
          `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`,
      )
      const head = `--b\r\ncontent-disposition: form-data; name="${fileField}"; filename="${filename}"\r\ncontent-type: text/plain\r\n\r\n`
      const whole = Buffer.concat([
        Buffer.from(parts.join('') + head),
        Buffer.from(file),
        Buffer.from('\r\n--b--\r\n'),
      ])
      const body = kind === 'broken' ? whole.subarray(0, cut % (whole.length + 1)) : whole
      return {
        headers: { 'content-type': 'multipart/form-data; boundary=b' },
        body: new Uint8Array(body),
      }
    })
}
