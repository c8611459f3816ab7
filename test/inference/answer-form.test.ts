import { describe, expect, test } from 'bun:test'
import { createFormatCheck } from '#inference/answer-form.ts'

type Schema = Record<string, unknown>

const person: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    age: { type: 'integer', minimum: 0 },
    tags: { type: 'array', items: { type: 'string', enum: ['new', 'old'] }, maxItems: 2 },
    boss: { anyOf: [{ $ref: '#' }, { type: 'null' }] },
  },
  required: ['name', 'age'],
  additionalProperties: false,
}

describe('a response matches a schema', () => {
  const right: Record<string, string> = {
    'with every required property': '{"name":"Ann","age":3}',
    'with white space around it': '\n {"name": "Ann", "age": 3}\n',
    'with a schema within itself':
      '{"name":"Ann","age":3,"boss":{"name":"Bo","age":9,"boss":null}}',
  }
  for (const [name, answer] of Object.entries(right)) {
    test(name, () => expect(fits(person, answer)).toBe(true))
  }

  const wrong: Record<string, string> = {
    'not when it is no JSON': 'Ann is three.',
    'not when it is empty': '',
    'not when it stands in a fence': '```json\n{"name":"Ann","age":3}\n```',
    'not when words follow': '{"name":"Ann","age":3} I hope that helps.',
    'not when it comes twice': '{"name":"Ann","age":3}{"name":"Ann","age":3}',
    'not when it breaks off': '{"name":"Ann","age":',
    'not with a wrong type': '{"name":"Ann","age":"3"}',
    'not with a fraction for a whole number': '{"name":"Ann","age":3.5}',
    'not below a bound': '{"name":"Ann","age":-1}',
    'not without a required property': '{"name":"Ann"}',
    'not with a property too many': '{"name":"Ann","age":3,"height":2}',
    'not with a value that is not listed': '{"name":"Ann","age":3,"tags":["blue"]}',
    'not with too many items': '{"name":"Ann","age":3,"tags":["new","old","new"]}',
    'not when an inner one is wrong': '{"name":"Ann","age":3,"boss":{"name":"Bo"}}',
    'not as a list': '[{"name":"Ann","age":3}]',
  }
  for (const [name, answer] of Object.entries(wrong)) {
    test(name, () => expect(fits(person, answer)).toBe(false))
  }
})

test('without a schema any object is valid, and nothing else', () => {
  const check = createFormatCheck({ type: 'json-object' })
  expect(check('{"anything":[1]}')).toBe(true)
  for (const answer of ['[]', '"text"', '7', 'null', '', '{', '```json\n{}\n```']) {
    expect(check(answer)).toBe(false)
  }
})

describe('with an unusable schema any valid JSON passes', () => {
  let deep: Schema = { type: 'string' }
  for (let depth = 0; depth < 500; depth++) deep = { properties: { a: deep } }
  const unusable: Record<string, Schema> = {
    'a reference that leads nowhere': { $ref: '#/$defs/missing' },
    'a reference to somewhere else': { $ref: 'https://schemas.example/one.json' },
    'an id that is no address': { $id: 'http://[', type: 'string' },
    'more nesting than is read': deep,
    'more schemas than are read': {
      allOf: Array.from({ length: 20_000 }, () => ({ type: 'string' })),
    },
    'a circle of references': { $defs: { a: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
    'a schema that is none': { properties: { a: 'text' } },
  }
  for (const [name, schema] of Object.entries(unusable)) {
    test(name, () => {
      expect(fits(schema, '{"a":1}')).toBe(true)
      expect(fits(schema, '{"a":')).toBe(false)
    })
  }

  test('excessive work is stopped', () => {
    const $defs: Schema = { level0: { type: 'string' } }
    for (let level = 1; level <= 60; level++) {
      const below = { $ref: `#/$defs/level${level - 1}` }
      $defs[`level${level}`] = { anyOf: [below, below] }
    }
    expect(fits({ $defs, $ref: '#/$defs/level60' }, '7')).toBe(true)
  })

  test('an endlessly nested response does no harm', () => {
    const schema = { properties: { a: { $ref: '#' } }, type: 'object' }
    expect(fits(schema, `${'{"a":'.repeat(50_000)}{}${'}'.repeat(50_000)}`)).toBe(true)
  })
})

describe('regular expressions are not checked', () => {
  test('patterns and formats are ignored, other keywords are checked', () => {
    const schema = { type: 'string', pattern: '^(a+)+$', format: 'date', maxLength: 40 }
    expect(fits(schema, `"${'a'.repeat(39)}!"`)).toBe(true)
    expect(fits(schema, `"${'a'.repeat(41)}"`)).toBe(false)
    expect(fits(schema, '7')).toBe(false)
  })

  test('properties with pattern names are allowed', () => {
    const schema = {
      type: 'object',
      properties: { id: { type: 'integer' } },
      patternProperties: { '^x-': { type: 'string' } },
      additionalProperties: false,
    }
    expect(fits(schema, '{"id":1,"x-color":"red"}')).toBe(true)
    expect(fits(schema, '{"id":"1"}')).toBe(false)
  })

  test('a negated pattern does not refuse valid values', () => {
    expect(fits({ type: 'string', not: { pattern: '^a' } }, '"b"')).toBe(true)
    expect(fits({ oneOf: [{ pattern: '^a' }, { pattern: '^b' }] }, '"b"')).toBe(true)
    expect(fits(JSON.parse('{"if":{"pattern":"^a"},"then":{"maxLength":1}}'), '"bbb"')).toBe(true)
    expect(fits({ oneOf: [{ type: 'string', pattern: '^a' }, { type: 'boolean' }] }, '7')).toBe(
      false,
    )
    expect(
      fits({ anyOf: [{ type: 'null' }], oneOf: [{ pattern: '^a' }, { pattern: '^b' }] }, '"b"'),
    ).toBe(false)
  })

  test('without a pattern, negations are enforced', () => {
    expect(fits({ not: { type: 'string' } }, '"b"')).toBe(false)
    expect(fits({ oneOf: [{ type: 'number' }, { type: 'integer' }] }, '1')).toBe(false)
    expect(fits(JSON.parse('{"if":{"type":"string"},"then":{"maxLength":1}}'), '"bb"')).toBe(false)
  })
})

describe('names and older drafts', () => {
  test('a property may have the name of a keyword', () => {
    const properties = { pattern: { type: 'integer' }, format: { type: 'integer' }, not: {} }
    const schema = { properties, additionalProperties: false }
    expect(fits(schema, '{"pattern":1,"format":2,"not":3}')).toBe(true)
    expect(fits(schema, '{"pattern":"1"}')).toBe(false)
  })

  test('a property may have the name of an Object.prototype member', () => {
    const schema = JSON.parse(
      '{"properties":{"__proto__":{"type":"integer"},"constructor":{"type":"integer"}},"additionalProperties":false}',
    )
    expect(fits(schema, '{"__proto__":1,"constructor":2}')).toBe(true)
    expect(fits(schema, '{"__proto__":"1"}')).toBe(false)
    expect(fits(schema, '{"constructor":"1"}')).toBe(false)
    expect(fits(schema, '{"toString":1}')).toBe(false)
  })

  test('tuples before and since draft 2020-12', () => {
    const old = { items: [{ type: 'string' }, { type: 'integer' }], additionalItems: false }
    const now = { prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false }
    for (const schema of [old, now]) {
      expect(fits(schema, '["a",1]')).toBe(true)
      expect(fits(schema, '["a","b"]')).toBe(false)
      expect(fits(schema, '["a",1,2]')).toBe(false)
    }
  })

  test('definitions under both names', () => {
    for (const name of ['$defs', 'definitions']) {
      const schema = { [name]: { age: { type: 'integer' } }, $ref: `#/${name}/age` }
      expect(fits(schema, '1')).toBe(true)
      expect(fits(schema, '"1"')).toBe(false)
    }
  })

  test('a list of types', () => {
    expect(fits({ type: ['string', 'null'] }, 'null')).toBe(true)
    expect(fits({ type: ['string', 'null'] }, '1')).toBe(false)
  })
})

function fits(schema: Schema, answer: string): boolean {
  const form = { type: 'json-schema', name: 'answer', description: null, strict: true } as const
  return createFormatCheck({ ...form, schema })(answer)
}
