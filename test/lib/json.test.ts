import { expect, test } from 'bun:test'
import { asRecord, isRecord, parseJson, withoutNulls } from '#lib/json.ts'

test.each([
  [{}, true],
  [{ a: 1 }, true],
  [Object.create(null), true],
  [[], false],
  [[{}], false],
  [null, false],
  [undefined, false],
  ['{}', false],
  [1, false],
  [() => {}, false],
])('%p is a record: %p', (value, expected) => {
  expect(isRecord(value)).toBe(expected)
  if (expected) expect(asRecord(value)).toBe(value)
  else expect(asRecord(value)).toEqual({})
})

test('invalid JSON is undefined, not an error', () => {
  expect(parseJson('{"a":[1,null]}')).toEqual({ a: [1, null] })
  expect(parseJson('null')).toBeNull()
  for (const text of ['', '{', "{'a':1}", 'undefined']) expect(parseJson(text)).toBeUndefined()
})

test('null fields are dropped, other falsy fields are kept', () => {
  const record = { zero: 0, no: false, empty: '', nothing: null, list: [null], inner: { a: null } }
  expect(withoutNulls(record)).toStrictEqual({
    zero: 0,
    no: false,
    empty: '',
    list: [null],
    inner: { a: null },
  })
})

test('a record without null fields is not copied', () => {
  const record = { a: 1, b: undefined }
  expect(withoutNulls(record)).toBe(record)
})
