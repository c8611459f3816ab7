import { expect, test } from 'bun:test'
import {
  readCount,
  readJsonText,
  readLogprobs,
  readNumber,
  readRecords,
  readString,
  readText,
} from '#inference/upstream-fields.ts'

test.each([
  [readString, ['a', '', 1, null, undefined], ['a', '', '', '', '']],
  [readText, ['a', '', 1, null, undefined], ['a', null, null, null, null]],
  [readNumber, [1, 0, '1', null], [1, 0, null, null]],
  [readCount, [1, 0, -1, Number.NaN, 1 / 0, '1'], [1, 0, null, null, null, null]],
  [
    readJsonText,
    ['{"a":', '', { a: 1 }, 0, null, undefined],
    ['{"a":', '', '{"a":1}', '0', '', ''],
  ],
  [readRecords, [[{ a: 1 }, 1, null, []], {}, null], [[{ a: 1 }], [], []]],
])('%p reads fields of any type', (read: (value: unknown) => unknown, given, expected) => {
  expect(given.map(read)).toEqual(expected as unknown[])
})

test('log probabilities without a token or a number are left out', () => {
  const of = (token: unknown, logprob: unknown, bytes?: unknown) => ({ token, logprob, bytes })
  const read = { token: 'é', logprob: -1, bytes: [195, 169] }
  expect(
    readLogprobs([
      of('é', -1),
      of('é', -1, [195, '169']),
      { ...of('é', -1, [1]), top_logprobs: [of('é', -1, null), of(1, -1), of('é', '-1')] },
      of(1, -1),
      of('é', null),
    ]),
  ).toEqual([
    { ...read, top: [] },
    { ...read, top: [] },
    { ...read, bytes: [1], top: [read] },
  ])
})
