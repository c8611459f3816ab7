import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readInputLines } from '#batches/input-lines.ts'
import { holdsAsync } from '#test/support/properties.ts'

async function* pieces(bytes: Uint8Array, sizes: readonly number[]) {
  let from = 0
  for (let at = 0; from < bytes.length; at++) {
    const size = sizes[at % Math.max(sizes.length, 1)] ?? bytes.length
    yield bytes.slice(from, from + size)
    from += size
  }
}

async function read(source: AsyncIterable<Uint8Array>, lineBytesMax: number) {
  const lines = []
  for await (const line of readInputLines(source, lineBytesMax)) lines.push(line)
  return lines
}

test('lines have the bytes at their place, however the input is divided', async () => {
  const text = fc.array(fc.constantFrom('a', 'ü', '\n', '\r\n', ' ', '\ufeff', '{"x":1}'))
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })
  await holdsAsync(fc.tuple(text, sizes), async ([parts, chunks]) => {
    const whole = parts.join('')
    const bytes = new TextEncoder().encode(whole)
    const expected = whole
      .replace(/^\ufeff/, '')
      .split('\n')
      .map((content, index) => ({ content, line: index + 1 }))
      .filter(({ content }) => /[^ \t\r\v\f]/.test(content))
    const found = await read(pieces(bytes, chunks), 1_000)
    expect(
      found.map(({ content, line }) => ({ content: Buffer.from(content ?? []).toString(), line })),
    ).toEqual(expected)
    for (const { content, startByte } of found) {
      const length = content?.length ?? 0
      expect(Buffer.from(bytes.slice(startByte, startByte + length))).toEqual(
        Buffer.from(content ?? []),
      )
    }
  })
})

test('a line beyond the limit is not kept', async () => {
  const part = new Uint8Array(1_000_000).fill(97)
  let sent = 0
  async function* endless() {
    for (; sent < 300; sent++) yield part
    yield new TextEncoder().encode('\n{}')
  }
  const before = process.memoryUsage().arrayBuffers
  const lines = await read(endless(), 2_000_000)
  expect(lines.map(({ line, content }) => [line, content === null])).toEqual([
    [1, true],
    [2, false],
  ])
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000)
})
