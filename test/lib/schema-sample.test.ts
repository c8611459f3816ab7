import { describe, expect, test } from 'bun:test'
import { FormatRegistry, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { isRecord } from '#lib/json.ts'
import { sampleFromSchema } from '#lib/schema-sample.ts'

FormatRegistry.Set('email', (text) => /^\S+@\S+$/.test(text))
FormatRegistry.Set('date', (text) => /^\d{4}-\d\d-\d\d$/.test(text))
FormatRegistry.Set('uuid', (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text))

/** The schema as a client sends it: JSON, without TypeBox symbols. */
function sampleOf(schema: TSchema): unknown {
  const wire: unknown = JSON.parse(JSON.stringify(schema))
  return isRecord(wire) ? sampleFromSchema(wire) : undefined
}

describe('a sample is accepted by its schema', () => {
  test.each<[string, TSchema]>([
    [
      'a tool with required and optional fields',
      Type.Object({ city: Type.String(), day: Type.Optional(Type.Integer()) }),
    ],
    [
      'nested objects and lists',
      Type.Object({
        a: Type.Array(Type.Object({ b: Type.Number() })),
        c: Type.Object({ d: Type.Boolean() }),
      }),
    ],
    ['no field but an open set of names', Type.Object({}, { minProperties: 0 })],
    ['a closed object', Type.Object({ a: Type.String() }, { additionalProperties: false })],
    ['a union of constants', Type.Union([Type.Literal('x'), Type.Literal('y')])],
    ['a union with null first', Type.Union([Type.Null(), Type.Object({ a: Type.Integer() })])],
    ['null alone', Type.Null()],
    [
      'an intersection',
      Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Integer() })]),
    ],
    ['a tuple', Type.Tuple([Type.String(), Type.Integer()])],
    ['a list of at least three', Type.Array(Type.Integer(), { minItems: 3 })],
    ['a list of different ones', Type.Array(Type.String(), { minItems: 3, uniqueItems: true })],
    ['an empty list', Type.Array(Type.String(), { maxItems: 0 })],
    ['an integer with bounds', Type.Integer({ minimum: 10, maximum: 12 })],
    ['a number between open bounds', Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 })],
    ['a negative number', Type.Number({ maximum: -5 })],
    ['a multiple', Type.Integer({ minimum: 8, multipleOf: 7 })],
    ['a short text', Type.String({ maxLength: 2 })],
    ['a long text', Type.String({ minLength: 20 })],
    ['an address', Type.String({ format: 'email' })],
    ['a day', Type.String({ format: 'date' })],
    ['a uuid', Type.String({ format: 'uuid' })],
    ['a pattern', Type.String({ pattern: '^[A-Z]{2,3}$' })],
    ['a numeric pattern', Type.String({ pattern: '^\\d{5}$', minLength: 5 })],
  ])('%s', (_, schema) => {
    expect(Value.Check(schema, sampleOf(schema))).toBe(true)
  })
})

test('references resolve within the schema', () => {
  const schema = {
    type: 'object',
    properties: { place: { $ref: '#/$defs/place' } },
    required: ['place'],
    $defs: { place: { type: 'object', properties: { name: { type: 'string' } } } },
  }
  expect(sampleFromSchema(schema)).toEqual({ place: { name: 'demo' } })
})

test('the sample of a recursive schema is finite', () => {
  const schema = {
    type: 'object',
    properties: { next: { $ref: '#' } },
    required: ['next'],
  }
  expect(JSON.stringify(sampleFromSchema(schema))).toContain('"next":null')
})

test('an enum yields its first value, a const its value', () => {
  expect(sampleFromSchema({ type: 'string', enum: ['metric', 'imperial'] })).toBe('metric')
  expect(sampleFromSchema({ const: 7 })).toBe(7)
})

test('every property is present if none is required', () => {
  const properties = { a: { type: 'string' }, b: { type: ['integer', 'null'] } }
  expect(sampleFromSchema({ type: 'object', properties })).toEqual({ a: 'demo', b: 1 })
})

test('a schema that requires too many values gets a truncated sample', () => {
  const $defs: Record<string, object> = { last: { type: 'string' } }
  let next = '#/$defs/last'
  for (let level = 0; level < 12; level++) {
    $defs[level] = { type: 'array', items: { $ref: next }, minItems: 100 }
    next = `#/$defs/${level}`
  }
  const text = JSON.stringify(sampleFromSchema({ $ref: next, $defs }))
  expect(text.length).toBeLessThan(1_000_000)
})

test('a pattern with excessive backtracking is skipped', () => {
  const pattern = '^(0+)+(0*)*x$'
  expect(sampleFromSchema({ type: 'string', pattern, minLength: 60 })).toHaveLength(60)
})

test('an invalid schema does not throw', () => {
  for (const schema of [
    { type: 'unknown' },
    { enum: [] },
    { anyOf: [] },
    { $ref: '#/nowhere' },
    { type: 'string', pattern: '(' },
    { type: 'array', minItems: 1e9 },
    { type: 'string', minLength: 1e9 },
  ]) {
    expect(() => sampleFromSchema(schema)).not.toThrow()
  }
})
