import { describe, expect, test } from 'bun:test'
import { expectInvalid, parse, refusalOf } from './parsing.ts'

describe('text.format', () => {
  const schema = {
    type: 'object',
    properties: { name: { type: ['string', 'null'] }, next: { $ref: '#/$defs/node' } },
    required: ['name'],
    additionalProperties: false,
    $defs: { node: { anyOf: [{ type: 'null' }, { $ref: '#' }, true] } },
  }

  test('can request any JSON', () => {
    const { request, echo } = parse({ text: { format: { type: 'json_object' } } })
    expect(request.format).toEqual({ type: 'json-object' })
    expect(echo.text).toEqual({ format: { type: 'json_object' } })
  })

  test('can request JSON of a schema', () => {
    const format = { type: 'json_schema', name: 'node', schema, strict: true }
    const { request, echo } = parse({ text: { format } })
    expect(request.format).toEqual({
      type: 'json-schema',
      name: 'node',
      description: null,
      schema,
      strict: true,
    })
    expect(echo.text).toEqual({ format: { ...format, description: null } })
  })

  test('distinguishes an absent strict from false', () => {
    const { request, echo } = parse({
      text: { format: { type: 'json_schema', name: 'any', schema: {}, strict: null } },
    })
    expect(request.format).toHaveProperty('strict', null)
    expect(echo.text.format).toHaveProperty('strict', false)
  })

  test('accepts a property with the name of a keyword', () => {
    const named = { type: 'object', properties: { type: { type: 'string' }, $ref: {}, enum: {} } }
    const format = { type: 'json_schema', name: 'named', schema: named }
    expect(parse({ text: { format } }).request.format).toHaveProperty('schema', named)
  })
})

describe('a text.format that is refused', () => {
  const format = { type: 'json_schema', name: 'answer', schema: { type: 'object' } }
  const nameRule = 'must be 1 to 64 letters, digits, underscores or dashes'

  test.each([
    ['text', 'text.format', 'must be an object'],
    [{}, 'text.format.type', 'is required'],
    [{ type: 'xml' }, 'text.format.type', 'must be one of text, json_object, json_schema'],
    [{ ...format, name: undefined }, 'text.format.name', 'is required'],
    [{ ...format, name: 'an answer' }, 'text.format.name', nameRule],
    [{ ...format, schema: undefined }, 'text.format.schema', 'is required'],
    [{ ...format, schema: [] }, 'text.format.schema', 'must be an object'],
    [{ ...format, schema: true }, 'text.format.schema', 'must be an object'],
    [{ ...format, strict: 'true' }, 'text.format.strict', 'must be a boolean'],
  ])('%j', (wanted, param, predicate) => {
    expectInvalid(refusalOf({ text: { format: wanted } }), param, `${param} ${predicate}.`)
  })

  const deep = (levels: number) => {
    let schema: object = { type: 'string' }
    for (let level = 1; level < levels; level++) schema = { items: schema }
    return schema
  }
  const rows: [schema: object, fault: string][] = [
    [
      { type: 'str' },
      '#/type must be one of string, number, integer, boolean, object, array, null, or a list of them',
    ],
    [
      { type: [] },
      '#/type must be one of string, number, integer, boolean, object, array, null, or a list of them',
    ],
    [{ properties: [] }, '#/properties must be an object of schemas'],
    [{ properties: { a: 'string' } }, '#/properties/a must be an object'],
    [{ properties: { a: null } }, '#/properties/a must be an object'],
    [{ required: true }, '#/required must be a list of strings'],
    [{ properties: { a: { required: [7] } } }, '#/properties/a/required must be a list of strings'],
    [{ enum: 'a' }, '#/enum must be a list'],
    [{ pattern: 7 }, '#/pattern must be a string'],
    [{ anyOf: {} }, '#/anyOf must be a list of schemas'],
    [{ anyOf: [] }, '#/anyOf must be a list of schemas'],
    [{ anyOf: [{}, 7] }, '#/anyOf/1 must be an object'],
    [{ items: 'string' }, '#/items must be an object'],
    [{ items: [{ type: 'string' }, 'x'] }, '#/items/1 must be an object'],
    [{ $ref: 'https://example.com/a.json' }, '#/$ref must be a path within the schema (#/…)'],
    [
      { $defs: { a: { $ref: 'other.json#/a' } } },
      '#/$defs/a/$ref must be a path within the schema (#/…)',
    ],
    [deep(65), 'it nests deeper than 64 schemas'],
    [deep(50_000), 'it nests deeper than 64 schemas'],
  ]
  for (const [schema, fault] of rows) {
    test(`for its schema: ${fault}`, () => {
      expectInvalid(
        refusalOf({ text: { format: { ...format, schema } } }),
        'text.format.schema',
        `text.format.schema is not a valid JSON Schema: ${fault}.`,
      )
    })
  }

  test('accepts a schema of 64 levels', () => {
    const text = { format: { ...format, schema: deep(64) } }
    const { request } = parse({ text })
    expect(request.format.type).toBe('json-schema')
  })
})
