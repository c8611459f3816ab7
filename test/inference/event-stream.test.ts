import { expect, test } from 'bun:test'
import { EventStreamParser, type ServerSentEvent } from '#inference/event-stream.ts'
import { chunkOf } from '#inference/transport.ts'

const encoder = new TextEncoder()

function parse(pieces: Iterable<Uint8Array>, eventBytesMax = 1_000): ServerSentEvent[] {
  const parser = new EventStreamParser({ eventBytesMax })
  const events: ServerSentEvent[] = []
  for (const piece of pieces) events.push(...parser.push(chunkOf(piece)))
  const last = parser.end()
  return last === null ? events : [...events, last]
}

const parseText = (text: string) => parse([encoder.encode(text)])

test('an event is emitted at its blank line', () => {
  const parser = new EventStreamParser({ eventBytesMax: 1_000 })
  expect(parser.push(chunkOf(encoder.encode('data: one\n')))).toEqual([])
  expect(parser.push(chunkOf(encoder.encode('\n')))).toEqual([{ event: '', data: 'one' }])
  expect(parser.end()).toBeNull()
})

test('the event type applies to one event only', () => {
  expect(parseText('event: error\ndata: a\n\ndata: b\n\n')).toEqual([
    { event: 'error', data: 'a' },
    { event: '', data: 'b' },
  ])
})

test('several data lines are joined with line feeds', () => {
  expect(parseText('data: {\ndata: "a": 1\ndata\ndata: }\n\n')).toEqual([
    { event: '', data: '{\n"a": 1\n\n}' },
  ])
})

test('one space after the colon is not part of the value, a second one is', () => {
  expect(parseText('data:a\n\ndata:  b\n\ndata:\n\n').map(({ data }) => data)).toEqual([
    'a',
    ' b',
    '',
  ])
})

test('comments, ids, retry hints and unknown fields are ignored', () => {
  expect(parseText(': ping\n\nid: 7\nretry: 100\nfoo: bar\ndatax: no\ndata: a\n\n')).toEqual([
    { event: '', data: 'a' },
  ])
})

test('lines may end with LF, CR or CR LF', () => {
  for (const end of ['\n', '\r', '\r\n']) {
    expect(parseText(`event: e${end}data: a${end}data: b${end}${end}`)).toEqual([
      { event: 'e', data: 'a\nb' },
    ])
  }
})

test('a byte order mark at the start is not part of the first field', () => {
  expect(parse([new Uint8Array([0xef, 0xbb, 0xbf]), encoder.encode('data: a\n\n')])).toEqual([
    { event: '', data: 'a' },
  ])
})

test('the last event is emitted although its blank line is missing', () => {
  expect(parseText('data: a\n\ndata: b\n')).toEqual(parseText('data: a\n\ndata: b'))
  expect(parseText('data: a\n\ndata: b').at(-1)).toEqual({ event: '', data: 'b' })
})

test('the events do not depend on how the bytes are split', () => {
  const text = '\uFEFFevent: a\r\ndata: größe 🎉\r\n\r\n: c\r\rdata:x\rdata: 字\r\n\ndata: last\n\n'
  const bytes = encoder.encode(text)
  const whole = parse([bytes])
  expect(whole).toEqual([
    { event: 'a', data: 'größe 🎉' },
    { event: '', data: 'x\n字' },
    { event: '', data: 'last' },
  ])
  for (let first = 0; first <= bytes.length; first++) {
    for (let second = first; second <= bytes.length; second++) {
      const pieces = [
        bytes.subarray(0, first),
        bytes.subarray(first, second),
        bytes.subarray(second),
      ]
      expect(parse(pieces)).toEqual(whole)
    }
  }
})

test('an incomplete event beyond the limit fails the stream', () => {
  const longLine = encoder.encode(`data: ${'x'.repeat(100)}\n\n`)
  const byteByByte = Array.from(longLine, (byte) => Uint8Array.of(byte))
  expect(() => parse(byteByByte, 50)).toThrow('too long')
  const manyLines = encoder.encode('data: 0123456789\n'.repeat(10))
  expect(() => parse([manyLines, encoder.encode('\n')], 50)).toThrow('too long')
})

test('many short events in one read are within the limit', () => {
  expect(parse([encoder.encode('data: 0123456789\n\n'.repeat(100))], 50)).toHaveLength(100)
})
