import { expect, test } from 'bun:test'
import { gbnfSchema } from '#inference/upstreams/llama/gbnf-schema.ts'

test.each([
  ['plain types stay', { type: 'boolean' }, { type: 'boolean' }],
  ['several plain types stay', { type: ['string', 'null'] }, { type: ['string', 'null'] }],
  [
    'several types including an object become oneOf',
    { type: ['object', 'null'], properties: { a: { type: 'null' } } },
    {
      oneOf: [
        { type: 'object', properties: { a: { type: 'null' } }, additionalProperties: false },
        { type: 'null' },
      ],
    },
  ],
  ['anyOf is oneOf', { anyOf: [{ type: 'null' }, {}] }, { oneOf: [{ type: 'null' }, {}] }],
  ['a constant stays', { const: 'a', type: 'string' }, { const: 'a' }],
  ['one that is no plain value is anything', { const: [1] }, {}],
  ['values to choose from stay', { enum: ['a', 1, null] }, { enum: ['a', 1, null] }],
  ['an object among them makes them anything', { enum: [{ a: 1 }] }, {}],
  [
    'an object without properties allows any',
    { type: 'object' },
    {
      type: 'object',
      properties: {},
      additionalProperties: true,
    },
  ],
  [
    'an object that disallows properties is closed',
    { type: 'object', properties: {} },
    {
      type: 'object',
      properties: {},
      additionalProperties: false,
    },
  ],
  [
    'additional properties are converted',
    { additionalProperties: { type: 'string', format: 'email' }, type: 'object', maxProperties: 2 },
    { type: 'object', properties: {}, additionalProperties: { type: 'string' }, maxProperties: 2 },
  ],
  [
    'an array keeps its bounds, unknown keywords are dropped',
    { type: 'array', items: { type: 'integer', minimum: 3 }, maxItems: 2, uniqueItems: true },
    { type: 'array', items: { type: 'integer' }, maxItems: 2 },
  ],
  ['a date is one', { type: 'string', format: 'date' }, { type: 'string', format: 'date' }],
  [
    'string lengths are kept',
    { type: 'string', maxLength: 3, pattern: 'a' },
    {
      type: 'string',
      maxLength: 3,
    },
  ],
  [
    'legacy definitions are converted',
    { $ref: '#/definitions/x', definitions: { x: { type: 'null' } } },
    { $ref: '#/$defs/x', $defs: { x: { type: 'null' } } },
  ],
  [
    'a missing type is inferred',
    { properties: { a: true } },
    {
      type: 'object',
      properties: { a: {} },
      additionalProperties: false,
    },
  ],
  ['a description stays', { description: 'd', type: 'null' }, { description: 'd', type: 'null' }],
  ['true is anything', true, {}],
  ['oneOf stays', { oneOf: [{ type: 'null' }, {}] }, { oneOf: [{ type: 'null' }, {}] }],
  [
    'every plain type stays in a list',
    { type: ['string', 'number', 'integer', 'boolean', 'null'] },
    { type: ['string', 'number', 'integer', 'boolean', 'null'] },
  ],
  ['truth values to choose from stay', { enum: [true, 1.5] }, { enum: [true, 1.5] }],
  [
    'a closed object has no bounds',
    { type: 'object', properties: {}, additionalProperties: false, minProperties: 1 },
    { type: 'object', properties: {}, additionalProperties: false },
  ],
  [
    'an open object keeps its bounds',
    { type: 'object', properties: {}, additionalProperties: true, minProperties: 1 },
    { type: 'object', properties: {}, additionalProperties: true, minProperties: 1 },
  ],
  [
    'the first items of an array are converted',
    { type: 'array', prefixItems: [{ type: 'null', title: 'x' }], minItems: 1 },
    { type: 'array', prefixItems: [{ type: 'null' }], minItems: 1 },
  ],
  ['items make an array', { items: { type: 'null' } }, { type: 'array', items: { type: 'null' } }],
  [
    'a date and time is one',
    { type: 'string', format: 'date-time' },
    { type: 'string', format: 'date-time' },
  ],
  [
    'a time is one',
    { type: 'string', format: 'time', minLength: 1 },
    { type: 'string', format: 'time' },
  ],
  ['the least length is kept', { type: 'string', minLength: 3 }, { type: 'string', minLength: 3 }],
  [
    'definitions are converted',
    { $ref: '#/$defs/x', $defs: { x: { type: 'null', title: 'x' } } },
    { $ref: '#/$defs/x', $defs: { x: { type: 'null' } } },
  ],
])('%s', (_name, schema, expected) => {
  expect(gbnfSchema(schema)).toEqual(expected)
})

test('an endlessly nested schema is cut at the depth limit', () => {
  let schema: object = { type: 'null' }
  for (let depth = 0; depth < 1_000; depth++) schema = { type: 'array', items: schema }
  const text = JSON.stringify(gbnfSchema(schema))
  expect(text.match(/"array"/g)).toHaveLength(65)
})
