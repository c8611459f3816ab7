import { afterEach, describe, expect, jest, test } from 'bun:test'
import { copyFileSync, rmSync } from 'node:fs'
import { builtInTokenizer, createTokenizers } from '#inference/token-count/tokenizers.ts'
import { realTokens, textKinds, textOf } from '#test/support/token-texts.ts'
import { writeTokenizerFile, writeWordTokenizer } from '#test/support/tokenizer-file.ts'

const warnings: unknown[] = []
const log = {
  warn(message: string, fields: unknown) {
    warnings.push({ message, fields })
  },
}
let tokenizers = createTokenizers({ log })
afterEach(() => {
  tokenizers.close()
  tokenizers = createTokenizers({ log })
  warnings.length = 0
})

const count = (...texts: string[]) => tokenizers.count(builtInTokenizer, texts)

describe('the built-in tokenizer', () => {
  test('counts exactly', async () => {
    const counted = await count(...textKinds.map(textOf))
    expect(counted).toEqual(textKinds.map((kind) => realTokens(kind, 'o200k')))
  })

  test('is ready after its first count', async () => {
    expect(tokenizers.isReady(builtInTokenizer)).toBeFalse()
    await count('some text')
    expect(tokenizers.isReady(builtInTokenizer)).toBeTrue()
  })

  test('counts special tokens as plain text', async () => {
    const [counted] = (await count('<|endoftext|>')) ?? []
    expect(counted).toBeGreaterThan(3)
  })

  test('counts long texts in parts with nearly the same result', async () => {
    const english = textOf('english')
    const [counted] = (await count(english.repeat(300))) ?? []
    const expected = realTokens('english', 'o200k') * 300
    expect(Math.abs((counted ?? 0) / expected - 1)).toBeLessThan(0.01)
  })

  test('counts endless runs nearly as exactly', async () => {
    // Counted whole, ten thousand of these have 1,250, 157 and 625 tokens.
    const counted = (await count('a'.repeat(10_000), ' '.repeat(20_000), '=-'.repeat(5_000))) ?? []
    expect(counted[0]).toBeWithin(1_250, 1_450)
    expect(counted[1]).toBeWithin(157, 420)
    expect(counted[2]).toBeWithin(625, 900)
  })

  test('serves concurrent counts', async () => {
    const asked = Array.from({ length: 50 }, (_, at) => textOf('english').repeat(1 + (at % 5)))
    const alone = await count(...asked)
    const together = await Promise.all(asked.map((text) => count(text)))
    expect(together.map((counted) => counted?.[0])).toEqual([...(alone ?? [])])
  })

  test('counts an empty list', async () => {
    expect(await count()).toEqual([])
  })
})

describe('the tokenizer of a file', () => {
  test('counts by the file', async () => {
    const path = writeWordTokenizer()
    expect(await tokenizers.count(path, ['five words, and a mark', 'two words'])).toEqual([6, 2])
    expect(tokenizers.isReady(path)).toBeTrue()
    expect(tokenizers.isReady(builtInTokenizer)).toBeFalse()
  })

  test.each([
    ['is not there', () => '/nowhere/tokenizer.json'],
    ['is no JSON', () => writeTokenizerFile('{"model":')],
    ['is JSON of something else', () => writeTokenizerFile('{"lines": []}')],
  ])('that %s cannot be read by is logged once and not tried again', async (_name, path) => {
    const file = path()
    expect(await tokenizers.count(file, ['some text'])).toBeNull()
    expect(await tokenizers.count(file, ['some text'])).toBeNull()
    expect(warnings).toHaveLength(1)
    expect(await count('some text')).toEqual([2])
  })

  test('is read again a minute after it could not be read', async () => {
    jest.useFakeTimers()
    try {
      const path = writeTokenizerFile('{"model":')
      expect(await tokenizers.count(path, ['one two'])).toBeNull()
      copyFileSync(writeWordTokenizer(), path)
      jest.advanceTimersByTime(59_999)
      expect(await tokenizers.count(path, ['one two'])).toBeNull()
      jest.advanceTimersByTime(1)
      expect(await tokenizers.count(path, ['one two'])).toEqual([2])
    } finally {
      jest.useRealTimers()
    }
  })

  test('does not need the file once it was loaded', async () => {
    const path = writeWordTokenizer()
    await tokenizers.count(path, ['one'])
    rmSync(path)
    expect(await tokenizers.count(path, ['one two'])).toEqual([2])
  })
})

test('requests beyond the queue limit are not counted', async () => {
  const half = 'words '.repeat(1_500_000)
  const [first, second] = await Promise.all([count(half), count(half)])
  expect(first).not.toBeNull()
  expect(second).toBeNull()
  expect(await count('some text')).toEqual([2])
})

test('closing ends pending counts without a log line', async () => {
  const counting = count(textOf('english').repeat(1_000))
  tokenizers.close()
  expect(await counting).toBeNull()
  expect(await count('some text')).toBeNull()
  expect(warnings).toEqual([])
})
