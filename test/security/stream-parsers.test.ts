import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventStreamParser } from '#inference/event-stream.ts'
import { ResponseParser } from '#inference/transport/http1-response.ts'
import { chunkOf } from '#inference/transport.ts'
import { AppError } from '#lib/errors.ts'
import { divide, holds } from '#test/support/properties.ts'

/** Parsers of streams: the same result wherever reads divide the bytes, and known errors alone. */

const encoder = new TextEncoder()
const cuts = fc.array(fc.nat(), { maxLength: 10 })

describe('text/event-stream', () => {
  const eventBytesMax = 500
  function parse(pieces: readonly Uint8Array[]): unknown {
    const parser = new EventStreamParser({ eventBytesMax })
    try {
      const events = pieces.flatMap((piece) => parser.push(chunkOf(piece)))
      const last = parser.end()
      return last === null ? events : [...events, last]
    } catch (error) {
      if (error instanceof AppError) return error.kind
      throw error
    }
  }
  const line = fc.oneof(
    fc
      .tuple(
        fc.constantFrom('data', 'event', 'id', 'retry', '', 'x'),
        fc.string({ unit: 'binary', maxLength: 20 }),
      )
      .map(([name, value]) => `${name}:${value}`),
    fc.constantFrom('', 'data', ':', '\ufeffdata: a', 'data: 👨‍👩‍👧', 'data: \ud83d'),
  )
  const stream = fc
    .array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n')), {
      maxLength: 20,
    })
    .map((lines) => encoder.encode(lines.flat().join('')))

  test('is the same at every division', () => {
    holds(
      fc.tuple(stream, cuts),
      ([bytes, at]) => {
        expect(parse(divide(bytes, at))).toEqual(parse([bytes]))
      },
      300,
    )
  })

  test('is the same byte by byte', () => {
    holds(stream, (bytes) => {
      expect(parse([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(parse([bytes]))
    })
  })

  test('of events returns them', () => {
    const data = fc
      .string({ unit: 'binary', maxLength: 60 })
      .filter((text) => text.isWellFormed() && !/[\r\n\0\ufeff]/.test(text))
    holds(fc.tuple(fc.array(data, { minLength: 1, maxLength: 5 }), cuts), ([texts, at]) => {
      const bytes = encoder.encode(texts.map((text) => `data: ${text}\n\n`).join(''))
      expect(parse(divide(bytes, at))).toEqual(texts.map((text) => ({ event: '', data: text })))
    })
  })
})

describe('an HTTP/1.1 response', () => {
  function parse(pieces: readonly Uint8Array[]): unknown {
    const parser = new ResponseParser({ headerBytesMax: 1_000 })
    let body = ''
    for (const piece of pieces) {
      const payload = parser.push(Buffer.from(piece))
      if (payload !== null) body += payload.bytes.toString('latin1', payload.start, payload.end)
      if (parser.failure !== null) {
        expect(parser.failure).toBeInstanceOf(AppError)
        return 'refused'
      }
    }
    const { head, complete } = parser
    return { status: head?.status, length: head?.headers.get('content-length'), body, complete }
  }
  const latin1 = fc.string({ maxLength: 12 })
  const header = fc.oneof(
    fc.constantFrom(
      'Transfer-Encoding: chunked',
      'Content-Length: 5',
      'Content-Length: +5',
      'X-A : b',
      ' folded',
      'X-A: b',
    ),
    fc.tuple(latin1, latin1).map(([name, value]) => `${name}: ${value}`),
  )
  const head = fc
    .tuple(
      fc.constantFrom(
        'HTTP/1.1 200 OK',
        'HTTP/1.0 200 OK',
        'HTTP/1.1 204',
        'HTTP/1.1 099 x',
        'HTTP/2 200',
        'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK',
      ),
      fc.array(header, { maxLength: 4 }),
      fc.constantFrom('\r\n', '\n'),
    )
    .map(([start, headers, end]) => [start, ...headers, '', ''].join(end))
  const chunk = fc
    .tuple(
      fc.oneof(
        fc.nat({ max: 9 }).map(String),
        fc.constantFrom('', '-1', 'ff', 'x', '5;a=b', '0x2', 'f'.repeat(20)),
      ),
      latin1,
    )
    .map(([size, data]) => `${size}\r\n${data}\r\n`)
  const response = fc
    .tuple(
      head,
      fc.oneof(
        fc.array(chunk, { maxLength: 4 }).map((chunks) => `${chunks.join('')}0\r\n\r\n`),
        latin1,
      ),
    )
    .map((parts) => Buffer.from(parts.join(''), 'latin1'))

  test('is the same at every division', () => {
    holds(
      fc.tuple(response, cuts),
      ([bytes, at]) => {
        const pieces = divide(bytes, at).filter(({ length }) => length > 0)
        expect(parse(pieces)).toEqual(parse([bytes]))
      },
      400,
    )
  })

  test('of chunks has their bytes', () => {
    const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 6 })
    holds(fc.tuple(chunks, cuts), ([parts, at]) => {
      const framed = parts.flatMap((part) => [
        Buffer.from(`${part.length.toString(16)}\r\n`),
        part,
        Buffer.from('\r\n'),
      ])
      const start = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      const bytes = Buffer.concat([start, ...framed, Buffer.from('0\r\n\r\n')])
      expect(parse(divide(bytes, at))).toMatchObject({
        body: Buffer.concat(parts).toString('latin1'),
        complete: true,
      })
    })
  })
})
