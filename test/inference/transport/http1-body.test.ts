import { expect, test } from 'bun:test'
import { createBodyReader, wholeChunk } from '#inference/transport/http1-body.ts'
import { type Chunk, viewOf } from '#inference/transport.ts'
import { chunk, lastChunk } from './scripted-server.ts'

const bytesOf = (text: string) => Buffer.from(text, 'latin1')
const textOf = (read: Chunk | null) => read && Buffer.from(viewOf(read)).toString('latin1')

/** Of a chunked body. */
function openReader() {
  const headers = new Map([['transfer-encoding', 'chunked']])
  return createBodyReader({ status: 200, minorVersion: 1, headers }, { headerBytesMax: 1_024 })
}

for (const payload of ['a', 'hello', '5\r\nhello\r\n', 'x'.repeat(255), 'x'.repeat(65_535)]) {
  const hex = payload.length.toString(16)
  for (const size of new Set([hex, hex.toUpperCase()])) {
    test(`a chunk of size ${size} in one read is the payload that a reader finds`, () => {
      const framed = `${size}\r\n${payload}\r\n`
      expect(textOf(wholeChunk(bytesOf(framed)))).toBe(payload)
      const reader = openReader()
      expect(textOf(reader.push(bytesOf(framed), 0))).toBe(payload)
      expect(reader.isAtChunk).toBe(true)
    })
  }
}

for (const [what, bytes] of Object.entries({
  'two chunks': chunk('one') + chunk('two'),
  'the last chunk': lastChunk,
  'a chunk and the last one': chunk('one') + lastChunk,
  'an empty read': '',
  'a size alone': '5\r\n',
  'a part of a chunk': '5\r\nhell',
  'a chunk without its end': '5\r\nhello',
  'a chunk with half of its end': '5\r\nhello\r',
  'a chunk with an extension': '5;a=b\r\nhello\r\n',
  'a space after the size': '5 \r\nhello\r\n',
  'no size': '\r\nhello\r\n',
  'a size that is no number': 'g\r\nhello\r\n',
  'a size that is too large': '6\r\nhello\r\n',
  'a size that is too small': '4\r\nhello\r\n',
  'a long size': '00005\r\nhello\r\n',
  'no line feed after the size': '5\r_hello\r\n',
  'no carriage return after the size': '5_\nhello\r\n',
  'no line feed after the payload': '5\r\nhello\r_',
  'no carriage return after the payload': '5\r\nhello_\n',
})) {
  test(`${what}: left to the reader`, () => {
    expect(wholeChunk(bytesOf(bytes))).toBeNull()
  })
}

test('a reader is at a chunk only between two', () => {
  const reader = openReader()
  const seen: boolean[] = [reader.isAtChunk]
  for (const byte of chunk('ab')) {
    reader.push(bytesOf(byte), 0)
    seen.push(reader.isAtChunk)
  }
  expect(seen).toEqual([true, false, false, false, false, false, false, true])
})
