import type { TSchema } from '@sinclair/typebox'
import fc from 'fast-check'
import { isRecord } from '#lib/json.ts'

/** Values that a schema accepts, and values that break it. */

const depthMax = 6

/** Texts that parsers, databases and file systems stumble over. */
export const hostileText = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ maxLength: 12 }) },
  fc.constantFrom(
    ...['', ' ', '\0', 'a\0b', '\ud800', 'a\udfffb', '\ufeff', '\u202e', 'é', 'e\u0301', '👨‍👩‍👧'],
    ...[
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      'prototype',
      '.',
      '..',
      '../../etc',
    ],
    ...[
      "' or 1=1 --",
      '"; drop table x',
      '%',
      '_',
      '\\',
      '%_\\%',
      '$1',
      '{{7*7}}',
      '#{x}',
      '<b>&amp;',
    ],
    ...['\r\nset-cookie: a=b', 'null', 'true', 'NaN', '-0', '1e999', '0x10', '9007199254740993'],
    ...['http://169.254.169.254/', 'file:///etc/passwd', 'data:,x', 'javascript:1', '/dev/zero'],
  ),
  {
    weight: 1,
    arbitrary: fc.constantFrom('x'.repeat(300), '\u4e00'.repeat(5_000), 'a '.repeat(20_000)),
  },
)

const hostileNumber = fc.oneof(
  fc.constantFrom(0, -0, -1, 1, 0.5, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e21, 1e308, -1e308, 5e-324),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)

/** Any JSON value. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  hostileNumber,
  fc.boolean(),
  fc.constant(null),
  fc.constant([]),
  fc.constant({}),
  fc.constant(JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":1}}')),
  fc.array(fc.oneof(hostileText, hostileNumber), { maxLength: 4 }),
  fc.dictionary(hostileText, fc.oneof(hostileText, hostileNumber), { maxKeys: 4 }),
  fc.constantFrom(nested(20), nested(140)),
)

function nested(levels: number): unknown {
  let value: unknown = 0
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { a: value }
  return value
}

/** A value that the schema accepts, as far as the keywords of the endpoints say it. */
export function arbitraryOf(schema: TSchema, depth = 0): fc.Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema['const'])
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...schema['enum'])
  if (depth > depthMax) return fc.constant(null)
  const union = schema['anyOf']
  if (Array.isArray(union)) return fc.oneof(...union.map((one) => arbitraryOf(one, depth + 1)))
  switch (schema['type']) {
    case 'object':
      return objectOf(schema, depth)
    case 'array':
      return fc.array(arbitraryOf(schema['items'] ?? {}, depth + 1), {
        minLength: schema['minItems'] ?? 0,
        maxLength: Math.min(schema['maxItems'] ?? 3, (schema['minItems'] ?? 0) + 3),
      })
    case 'string':
      return textOf(schema)
    case 'integer':
      return fc.integer({
        min: Math.max(schema['minimum'] ?? -1_000, -(2 ** 31)),
        max: Math.min(schema['maximum'] ?? 1_000_000, 2 ** 31 - 1),
      })
    case 'number':
      return fc.double({
        min: schema['minimum'] ?? -1_000,
        max: schema['maximum'] ?? 1_000,
        noNaN: true,
      })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.constantFrom(null, 'a', 1, true, [], {})
  }
}

function objectOf(schema: TSchema, depth: number): fc.Arbitrary<unknown> {
  const properties: Record<string, TSchema> = schema['properties'] ?? {}
  const required: readonly string[] = schema['required'] ?? []
  const entries = Object.entries(properties)
  if (entries.length === 0 && schema['additionalProperties'] === false) return fc.constant({})
  if (entries.length === 0) {
    const [values] = Object.values<TSchema>(schema['patternProperties'] ?? {})
    const value = values === undefined ? fc.constant('v') : arbitraryOf(values, depth + 1)
    return fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), value, { maxKeys: 3 })
  }
  return fc.record(
    Object.fromEntries(entries.map(([name, one]) => [name, arbitraryOf(one, depth + 1)])),
    { requiredKeys: [...required].filter((name) => name in properties), noNullPrototype: true },
  )
}

function textOf(schema: TSchema): fc.Arbitrary<string> {
  const { minLength = 0, maxLength = 40, pattern, format } = schema
  if (format === 'uuid') return fc.uuid({ version: 7 })
  if (format === 'date-time') return fc.constant('2030-01-02T03:04:05Z')
  if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern, 'u'))
  const most = Math.min(maxLength, minLength + 40)
  return fc.string({ minLength, maxLength: most }).map((text) => text.slice(0, maxLength))
}

/** One place of a value, as the steps to it. */
type Path = readonly (string | number)[]

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (Array.isArray(value)) {
    return [path, ...value.flatMap((item, index) => pathsOf(item, [...path, index]))]
  }
  if (!isRecord(value)) return [path]
  return [path, ...Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))]
}

type Change = { readonly kind: 'replace' | 'remove' | 'add' | 'repeat'; readonly name: string }

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'add', 'repeat'),
  name: fc.oneof(
    hostileText,
    fc.constantFrom('__proto__', 'constructor', 'id', 'user_id', 'model'),
  ),
})

/** The value with one or two of its parts spoilt. */
export function spoilt(values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const step = fc.tuple(fc.nat(), change, hostileValue)
  return fc.tuple(values, fc.array(step, { minLength: 1, maxLength: 2 })).map(([value, steps]) =>
    steps.reduce((spoilt, [place, how, by]) => {
      const paths = pathsOf(spoilt)
      return spoil(spoilt, paths[place % paths.length] ?? [], { how, by })
    }, value),
  )
}

function spoil(value: unknown, path: Path, change: { how: Change; by: unknown }): unknown {
  const [step, ...rest] = path
  if (step === undefined) return spoilHere(value, change)
  if (Array.isArray(value)) {
    const copy = [...value]
    if (rest.length === 0 && change.how.kind === 'remove') copy.splice(Number(step), 1)
    else copy[Number(step)] = spoil(copy[Number(step)], rest, change)
    return copy
  }
  const entries = Object.entries(Object(value))
  const isRemoval = rest.length === 0 && change.how.kind === 'remove'
  return fromEntries(
    entries.flatMap(([key, item]) => {
      if (key !== step) return [[key, item]]
      return isRemoval ? [] : [[key, spoil(item, rest, change)]]
    }),
  )
}

function spoilHere(value: unknown, { how, by }: { how: Change; by: unknown }): unknown {
  if (how.kind === 'add' && isRecord(value))
    return fromEntries([...Object.entries(value), [how.name, by]])
  if (how.kind === 'repeat' && Array.isArray(value))
    return Array.from({ length: 200 }, () => value[0])
  if (how.kind === 'repeat' && typeof value === 'string')
    return value.repeat((1 + 2_000 / (value.length + 1)) | 0)
  return by
}

/** `__proto__` becomes a key, as in JSON. */
function fromEntries(entries: readonly (readonly unknown[])[]): unknown {
  const body = entries.map(
    ([key, item]) => `${JSON.stringify(String(key))}:${JSON.stringify(item) ?? 'null'}`,
  )
  return JSON.parse(`{${body.join(',')}}`)
}

/** Bodies that are no JSON, or not as their headers say. */
export function brokenBodies(values: fc.Arbitrary<unknown>): fc.Arbitrary<{
  readonly body: Uint8Array<ArrayBuffer>
  readonly headers: Readonly<Record<string, string>>
}> {
  const text = values.map((value) => Buffer.from(JSON.stringify(value) ?? 'null'))
  const body = fc.oneof(
    fc.tuple(text, fc.nat()).map(([bytes, at]) => bytes.subarray(0, at % (bytes.length + 1))),
    fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
    text.map((bytes) => Buffer.concat([bytes, Buffer.from([0xff, 0xfe])])),
    text.map((bytes) => Buffer.from(bytes.toString(), 'utf16le')),
    fc.constantFrom(
      ...['', '[]', '""', '0', 'null', '{', '{}{}', '{"a":1,"a":2}', '\ufeff{}', '[[[['].map(
        (piece) => Buffer.from(piece),
      ),
    ),
  )
  const headers = fc.record(
    {
      'content-type': fc.constantFrom(
        ...[
          'application/json',
          'text/plain',
          'application/x-www-form-urlencoded',
          'x',
          'image/png',
        ],
        ...[
          'multipart/form-data',
          'multipart/form-data; boundary=',
          'multipart/form-data; boundary=b',
        ],
      ),
      'content-encoding': fc.constantFrom(
        'gzip',
        'br',
        'zstd',
        'deflate',
        'x',
        'gzip, gzip',
        'identity',
      ),
      'if-match': fc.constantFrom('*', '"x"', 'W/"x"', '"', ''),
      'if-none-match': fc.constantFrom('*', '"x"', '"'),
      range: fc.constantFrom('bytes=0-', 'bytes=-1', 'bytes=9-1', 'bytes=a', 'bytes=0-0,2-3', 'x'),
      traceparent: fc.constantFrom('00-0-0-0', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`, 'x'),
      accept: fc.constantFrom('text/event-stream', 'x', '*/*;q=9'),
      'idempotency-key': fc.constantFrom('x', 'x'.repeat(5_000)),
    },
    { requiredKeys: ['content-type'], noNullPrototype: true },
  )
  return fc.record({ body: body.map((bytes) => new Uint8Array(bytes)), headers })
}
