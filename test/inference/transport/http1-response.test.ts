import { expect, test } from 'bun:test'
import { ResponseParser } from '#inference/transport/http1-response.ts'
import type { Chunk } from '#inference/transport.ts'
import { AppError } from '#lib/errors.ts'

const limits = { headerBytesMax: 2_000 }

type ParsedResponse = {
  status: number | undefined
  headers: Record<string, string>
  body: string
  complete: boolean
  endsWithConnection: boolean
  reusable: boolean
}

const headersOfCases = ['content-length', 'transfer-encoding', 'connection', 'x-a', 'x-empty']

const textOf = (chunk: Chunk | null) =>
  chunk === null ? '' : chunk.bytes.toString('latin1', chunk.start, chunk.end)

/** Parses a response given in pieces; each is a copy, because a parser may modify its input. */
function read(pieces: readonly string[]): ParsedResponse {
  const parser = new ResponseParser(limits)
  let body = ''
  for (const piece of pieces) {
    const payload = parser.push(Buffer.from(piece, 'latin1'))
    body += textOf(payload)
    if (parser.failure !== null) throw parser.failure
  }
  return {
    status: parser.head?.status,
    headers: Object.fromEntries(
      headersOfCases.flatMap((name) => {
        const value = parser.head?.headers.get(name)
        return value === undefined ? [] : [[name, value]]
      }),
    ),
    body,
    complete: parser.complete,
    endsWithConnection: parser.body?.endsWithConnection ?? false,
    reusable: parser.reusable,
  }
}

function failure(text: string): unknown {
  try {
    read([text])
    return null
  } catch (error) {
    return error
  }
}

const chunkedHead = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

const wellFormed: Record<string, { text: string; reading: Partial<ParsedResponse> }> = {
  'a body with a length': {
    text: 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world',
    reading: { status: 200, body: 'hello world', complete: true, reusable: true },
  },
  'a chunked body': {
    text: `${chunkedHead}5\r\nhello\r\n00A\r\n, my world\r\n1\r\n!\r\n0\r\n\r\n`,
    reading: { body: 'hello, my world!', complete: true, reusable: true },
  },
  'chunks with extensions and a trailer': {
    text: `${chunkedHead}3;a=b\r\nabc\r\n2 ; q="x"\r\nde\r\n0\r\nx-sum: 1\r\nx-more: 2\r\n\r\n`,
    reading: { body: 'abcde', complete: true, reusable: true },
  },
  'payload that looks like framing': {
    text: `${chunkedHead}7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n`,
    reading: { body: '0\r\n\r\n\r\n', complete: true },
  },
  'a body that ends with the connection': {
    text: 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nall of it',
    reading: { body: 'all of it', complete: false, endsWithConnection: true, reusable: false },
  },
  'an answer without a body': {
    text: 'HTTP/1.1 204 No Content\r\n\r\n',
    reading: { status: 204, body: '', complete: true, reusable: true },
  },
  'a 304, whose length is that of another answer': {
    text: 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5000\r\n\r\n',
    reading: { status: 304, body: '', complete: true, reusable: true },
  },
  'an empty body': {
    text: 'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n',
    reading: { status: 200, body: '', complete: true, reusable: true },
  },
  'interim answers before the real one': {
    text: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok',
    reading: { status: 201, headers: { 'content-length': '2' }, body: 'ok', complete: true },
  },
  'headers in any case, with blanks around their values, repeated': {
    text: 'HTTP/1.1 200 OK\r\nCONTENT-length:2\r\nX-A: \t one \t\r\nx-a:two\r\nx-empty:\r\n\r\nok',
    reading: {
      headers: { 'content-length': '2', 'x-a': 'one, two', 'x-empty': '' },
      body: 'ok',
    },
  },
  'the same length twice': {
    text: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok',
    reading: { body: 'ok', complete: true },
  },
  'a server that closes the connection afterwards': {
    text: 'HTTP/1.1 200 OK\r\nconnection: Keep-Alive, CLOSE\r\ncontent-length: 2\r\n\r\nok',
    reading: { body: 'ok', complete: true, reusable: false },
  },
  'HTTP/1.0': {
    text: 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
    reading: { body: 'ok', complete: true, reusable: false },
  },
  'more bytes than the length says': {
    text: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokay',
    reading: { body: 'ok', complete: true, reusable: false },
  },
  'bytes after the last chunk': {
    text: `${chunkedHead}2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n`,
    reading: { body: 'ok', complete: true, reusable: false },
  },
}

for (const [name, { text, reading }] of Object.entries(wellFormed)) {
  test(`${name}: is read`, () => {
    expect(read([text])).toMatchObject(reading)
  })

  test(`${name}: any split gives the same result`, () => {
    const whole = read([text])
    for (let at = 1; at < text.length; at += 1) {
      const split = read([text.slice(0, at), text.slice(at)])
      // Bytes after the end may come in a read of their own, when the parser is done with.
      expect({ ...split, reusable: whole.reusable }, `cut at ${at}`).toEqual(whole)
    }
    const bytewise = read([...text])
    expect({ ...bytewise, reusable: whole.reusable }, 'byte by byte').toEqual(whole)
  })
}

test('the pieces of one read form one chunk', () => {
  const parser = new ResponseParser(limits)
  parser.push(Buffer.from(chunkedHead))
  const payload = parser.push(Buffer.from('2\r\nab\r\n3\r\ncde\r\n1\r\nf\r\n4\r\ngh'))
  expect(textOf(payload)).toBe('abcdefgh')
  expect(textOf(parser.push(Buffer.from('ij\r\n')))).toBe('ij')
})

test('a chunk is a range of its read', () => {
  const parser = new ResponseParser(limits)
  parser.push(Buffer.from(chunkedHead))
  const bytes = Buffer.from('5\r\nhello\r\n')
  expect(parser.push(bytes)?.bytes).toBe(bytes)
})

test('a head may have the maximum length, also byte by byte', () => {
  const text = `HTTP/1.1 204 No Content\r\na: ${'b'.repeat(limits.headerBytesMax - 32)}\r\n\r\n`
  expect(text).toHaveLength(limits.headerBytesMax)
  expect(read([...text]).complete).toBe(true)
  expect(() => read([text.replace('a:', 'aa:')])).toThrow(AppError)
})

test('bytes before an error are delivered, also from the same read', () => {
  const parser = new ResponseParser(limits)
  const payload = parser.push(Buffer.from(`${chunkedHead}2\r\nab\r\n3\r\ncde\r\nwrong`))
  expect(textOf(payload)).toBe('abcde')
  expect(parser.failure).toMatchObject({ kind: 'upstream_invalid_answer' })
})

test('a contradictory head is invalid', () => {
  const parser = new ResponseParser(limits)
  parser.push(Buffer.from(`${chunkedHead.slice(0, -2)}content-length: 3\r\n\r\n`))
  expect(parser.head).toBeNull()
})

test('an interim response is skipped', () => {
  const parser = new ResponseParser(limits)
  parser.push(Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'))
  expect(parser.head).toBeNull()
})

const malformed: Record<string, string> = {
  'something other than HTTP': 'SSH-2.0-OpenSSH_9.2\r\n',
  'something other than HTTP, without a line end': '\x15\x03\x03\x00\x02\x02',
  'an empty line first': '\r\nHTTP/1.1 200 OK\r\n\r\n',
  'HTTP/2': 'HTTP/2 200\r\n\r\n',
  'HTTP/1.2': 'HTTP/1.2 200 OK\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\n\r\n',
  'a status beyond the known classes': 'HTTP/1.1 600 Odd\r\n\r\n',
  'a status line without blanks': 'HTTP/1.1200OK\r\n\r\n',
  'a switch of protocols': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
  'interim answers without end': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(17),
  'a head whose lines end with LF alone': 'HTTP/1.1 200 OK\ncontent-length: 0\n\n',
  'a carriage return inside a header': 'HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n',
  'a NUL inside a header': 'HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n',
  'a header without a colon': 'HTTP/1.1 200 OK\r\nabc\r\n\r\n',
  'a header without a name': 'HTTP/1.1 200 OK\r\n: abc\r\n\r\n',
  'a blank before the colon': 'HTTP/1.1 200 OK\r\ncontent-length : 0\r\n\r\n',
  'a folded header': 'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n',
  'too long a head': `HTTP/1.1 200 OK\r\na: ${'b'.repeat(2_000)}\r\n\r\n`,
  'too long a line that does not end': `HTTP/1.1 200 ${'b'.repeat(2_000)}`,
  'too many headers': `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(400)}\r\n`,
  'a length and chunks':
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
  'chunks in HTTP/1.0': 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
  'an unknown transfer encoding': 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n',
  'chunked twice':
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n',
  'two lengths': 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
  'two lengths in one header': 'HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n',
  'a signed length': 'HTTP/1.1 200 OK\r\ncontent-length: +4\r\n\r\n',
  'a hexadecimal length': 'HTTP/1.1 200 OK\r\ncontent-length: 0x4\r\n\r\n',
  'an empty length': 'HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n',
  'a length beyond reason': 'HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999\r\n\r\n',
  'a chunk without a size': `${chunkedHead}\r\nabc\r\n`,
  'a chunk whose size is no number': `${chunkedHead}xyz\r\nabc\r\n`,
  'a chunk with a prefixed size': `${chunkedHead}0x3\r\nabc\r\n`,
  'a chunk with a negative size': `${chunkedHead}-3\r\nabc\r\n`,
  'a chunk size beyond reason': `${chunkedHead}10000000000000\r\n`,
  'a chunk size with something behind it': `${chunkedHead}3 3\r\nabc\r\n`,
  'a chunk size that ends with LF alone': `${chunkedHead}3\nabc\r\n`,
  'a chunk size that ends with CR alone': `${chunkedHead}3\rabc\r\n`,
  'a chunk longer than its size': `${chunkedHead}3\r\nabcd\r\n`,
  'a chunk that ends with LF alone': `${chunkedHead}3\r\nabc\n`,
  'a chunk extension with a line feed': `${chunkedHead}3;a\nb\r\nabc\r\n`,
  'a chunk extension without end': `${chunkedHead}3;${'a'.repeat(1_100)}`,
  'blanks without end after a size': `${chunkedHead}3${' '.repeat(1_100)}`,
  'a trailer without end': `${chunkedHead}0\r\n${'a: b\r\n'.repeat(400)}`,
  'a trailer line that ends with LF alone': `${chunkedHead}0\r\na: b\n\r\n`,
  'no CR LF at the end': `${chunkedHead}0\r\n\rX`,
}

for (const [name, text] of Object.entries(malformed)) {
  test(`${name}: is refused for any split`, () => {
    const error = failure(text)
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ kind: 'upstream_invalid_answer' })
    expect(() => read([...text])).toThrow(AppError)
  })
}
