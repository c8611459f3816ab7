import { describe, expect, test } from 'bun:test'
import { type TSchema, Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { compileChecker } from '#lib/schema.ts'
import { refusedBySchema, refusedField } from '#lib/unprocessable.ts'

const filter = Type.Object(
  { type: Type.Literal('filter'), field: Type.String({ minLength: 1 }) },
  { additionalProperties: false },
)
const limit = Type.Object(
  { type: Type.Literal('limit'), count: Type.Integer({ minimum: 1, maximum: 50 }) },
  { additionalProperties: false },
)
const query = Type.Object(
  {
    name: Type.String({ minLength: 2, maxLength: 4 }),
    steps: Type.Optional(Type.Array(Type.Union([filter, limit]), { minItems: 1, maxItems: 2 })),
    mode: Type.Optional(Type.Union([Type.Literal('fast'), Type.Literal('exact'), Type.Null()])),
    weight: Type.Optional(Type.Number({ multipleOf: 1 })),
    'a/b': Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

function faultOf(schema: TSchema, value: unknown) {
  return compileChecker(schema).firstError(value)
}

describe('a schema checker', () => {
  test('accepts a valid value', () => {
    const value = { name: 'ok', steps: [{ type: 'limit', count: 1 }], mode: null, 'a/b': true }
    expect(compileChecker(query).check(value)).toBe(true)
    expect(faultOf(query, value)).toBeNull()
  })

  test.each<[unknown, string, string]>([
    [null, '', 'The value must be an object.'],
    [{}, 'name', '"name" is required.'],
    [{ name: 7 }, 'name', '"name" must be a string.'],
    [{ name: 'x' }, 'name', '"name" must have at least 2 characters.'],
    [{ name: 'xxxxx' }, 'name', '"name" must have at most 4 characters.'],
    [{ name: 'ok', mode: 'slow' }, 'mode', '"mode" must be "fast" or "exact" or null.'],
    [{ name: 'ok', weight: 1.5 }, 'weight', '"weight" must be a whole number.'],
    [{ name: 'ok', weight: '1' }, 'weight', '"weight" must be a whole number.'],
    [{ name: 'ok', 'a/b': 1 }, 'a/b', '"a/b" must be a boolean.'],
    [{ name: 'ok', steps: {} }, 'steps', '"steps" must be an array.'],
    [{ name: 'ok', steps: [] }, 'steps', '"steps" must not be empty.'],
    [{ name: 'ok', steps: [1, 1, 1] }, 'steps', '"steps" must have at most 2 items.'],
    [{ name: 'ok', steps: ['x'] }, 'steps[0]', '"steps[0]" must be an object.'],
    [
      {
        name: 'ok',
        steps: [
          { type: 'limit', count: 1 },
          { type: 'limit', count: 51 },
        ],
      },
      'steps[1].count',
      '"steps[1].count" must be at most 50.',
    ],
    [
      { name: 'ok', steps: [{ type: 'filter', field: '' }] },
      'steps[0].field',
      '"steps[0].field" must not be empty.',
    ],
  ])('%j: the error names the field and the expected type', (value, path, message) => {
    expect(faultOf(query, value)).toEqual({ path, message, unknownField: false })
  })

  test('reports unknown fields first', () => {
    expect(faultOf(query, { nmae: 'ok', weight: 'x' })).toEqual({
      path: 'nmae',
      message: '"nmae" is not a known field.',
      unknownField: true,
    })
    expect(faultOf(query, { name: 'ok', steps: [{ type: 'limit', count: 1, by: 2 }] })).toEqual({
      path: 'steps[0].by',
      message: '"steps[0].by" is not a known field.',
      unknownField: true,
    })
  })

  test('neither converts values nor drops fields', () => {
    const value = { name: 'ok', extra: 1 }
    const open = compileChecker(Type.Object({ name: Type.String() }))
    expect(open.check(value)).toBe(true)
    expect(value).toEqual({ name: 'ok', extra: 1 })
    expect(compileChecker(Type.Integer()).check('5')).toBe(false)
  })
})

test('a long field name is cut in the sentence and in an error', () => {
  const name = 'x'.repeat(5_000)
  const fault = compileChecker(Type.Object({}, { additionalProperties: false })).firstError({
    [name]: 1,
  })
  const cut = `${'x'.repeat(200)}…`
  expect(fault?.message).toBe(`"${cut}" is not a known field.`)
  const error = refusedBySchema(fault)
  expect([error.message, error.param]).toEqual([`"${cut}" is not a known field.`, cut])
  expect(refusedField(name, 'is wrong').message).toBe(`"${cut}" is wrong.`)
})

test('a message and a param of any length are cut', () => {
  const error = new AppError('not_found', 'x'.repeat(5_000), { param: 'y'.repeat(5_000) })
  expect([error.message.length, error.param?.length]).toEqual([1_501, 257])
})
