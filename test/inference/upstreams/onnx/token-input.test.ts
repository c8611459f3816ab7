import { expect, test } from 'bun:test'
import { Tokenizer } from '@huggingface/tokenizers'
import { meanOf, poolTokens, toUnitLength } from '#inference/upstreams/onnx/pooling.ts'
import { createTokenInput } from '#inference/upstreams/onnx/token-input.ts'
import { wordTokenizer } from '#test/support/embedding/tiny-models.ts'

const words = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const tokenizer = new Tokenizer(wordTokenizer(words), {})
const [start, end] = ['[CLS]', '[SEP]'].map((token) => tokenizer.token_to_id(token) ?? -1)
const idsOf = (text: string) => tokenizer.encode(text, { add_special_tokens: false }).ids

test('a long text has windows with their own special tokens, without a gap', () => {
  const windows = createTokenInput(tokenizer, 5).windowsOf('a b c d e f g')
  expect(windows.map(({ ids }) => ids)).toEqual([
    [start, ...idsOf('a b c'), end],
    [start, ...idsOf('d e f'), end],
    [start, ...idsOf('g'), end],
  ] as number[][])
})

test('an empty text has one window', () => {
  expect(createTokenInput(tokenizer, 5).windowsOf('')).toMatchObject([{ ids: [start, end] }])
})

test('a pair is cut at the end of its document', () => {
  const inputs = createTokenInput(tokenizer, 8)
  const pair = inputs.pairOf('a b', 'c d e f g', 100)
  expect(pair.ids).toEqual([start, ...idsOf('a b'), end, ...idsOf('c d e'), end] as number[])
  expect(pair.typeIds).toEqual([0, 0, 0, 0, 1, 1, 1, 1])
  const short = inputs.pairOf('a', 'c d e f g', 2)
  expect(short.ids).toEqual([start, ...idsOf('a'), end, ...idsOf('c d'), end] as number[])
})

test('padding does not change the vector of a text', () => {
  const rows = [1, 1, 3, 3, 9, 9, 5, 5, 100, 100, 100, 100]
  const output = { data: Float32Array.from(rows), dims: [2, 3, 2] }
  const inputs = [{ ids: [1, 2, 3] }, { ids: [1] }]
  const pooled = (how: 'mean' | 'cls' | 'last') =>
    poolTokens(output, inputs, how).map((vector) => vector[0])
  expect(pooled('mean')).toEqual([expect.closeTo(13 / 3, 5), 5])
  expect(pooled('cls')).toEqual([1, 5])
  expect(pooled('last')).toEqual([9, 5])
})

test('windows weigh by their length', () => {
  const parts = [
    { vector: Float32Array.of(0, 4), weight: 3 },
    { vector: Float32Array.of(4, 0), weight: 1 },
  ]
  expect([...meanOf(parts)]).toEqual([1, 3])
})

test('a text that fills its windows has no empty one after them', () => {
  expect(createTokenInput(tokenizer, 5).windowsOf('a b c d e f')).toHaveLength(2)
})

test('a query has at most half of a pair', () => {
  const inputs = createTokenInput(tokenizer, 8)
  const expected = [start, ...idsOf('a b c d'), end, ...idsOf('g'), end] as number[]
  expect(inputs.pairOf('a b c d', 'g', 100).ids).toEqual(expected)
  expect(inputs.pairOf('a b c d e f', 'g', 100).ids).toEqual(expected)
})

test('inputs are filled with the padding of their vocabulary', () => {
  const padOf = (found: Record<string, number>) => {
    const tokenize = { encode: tokenizer.encode.bind(tokenizer) }
    const token_to_id = (token: string) => found[token]
    const inputs = createTokenInput(Object.assign(tokenize, { token_to_id }) as never, 8)
    return [inputs.windowsOf('a')[0]?.padId, inputs.pairOf('a', 'b', 8).padId]
  }
  expect(padOf({ '<pad>': 7, '[PAD]': 8 })).toEqual([7, 7])
  expect(padOf({ '[PAD]': 8 })).toEqual([8, 8])
  expect(padOf({})).toEqual([0, 0])
})

test('an output that does not fit its inputs is refused', () => {
  const output = { data: Float32Array.of(1, 2), dims: [1, 2] }
  const one = [{ ids: [1] }]
  expect(poolTokens(output, one, 'mean')).toEqual([Float32Array.of(1, 2)])
  expect(() => poolTokens(output, [...one, ...one], 'mean')).toThrow('returns 1×2 values')
  const whole = { data: Int32Array.of(1), dims: [1, 1] }
  expect(() => poolTokens(whole as never, one, 'mean')).toThrow('not float32')
})

test('a vector has the length one, unless it is zero', () => {
  expect([...toUnitLength(Float32Array.of(3, 4))]).toEqual([
    expect.closeTo(0.6, 6),
    expect.closeTo(0.8, 6),
  ])
  expect([...toUnitLength(Float32Array.of(0, 0))]).toEqual([0, 0])
})
