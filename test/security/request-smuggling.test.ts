import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type GatewayProcess, startGatewayProcess, stopProcesses } from '#test/support/process.ts'
import { exchangeBytes } from '#test/support/raw-exchange.ts'

/**
 * Requests whose end two servers would see at different places. Each is followed by a second request,
 * which must not be answered.
 */

let gateway: GatewayProcess
beforeAll(async () => {
  gateway = await startGatewayProcess()
})
afterAll(stopProcesses)

const start = 'POST /v1/responses HTTP/1.1\r\n'
const host = 'Host: gateway\r\n'
const chunked = 'Transfer-Encoding: chunked\r\n'
const second = 'GET /readyz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n'

const framings: readonly [name: string, head: string, body?: string][] = [
  ['a length and chunks', `${host}Content-Length: 5\r\n${chunked}`, '0\r\n\r\n'],
  ['chunks and a length', `${host}${chunked}Content-Length: 5\r\n`, '0\r\n\r\n'],
  ['two lengths', `${host}Content-Length: 2\r\nContent-Length: 4\r\n`, '{}'],
  ['a list of lengths', `${host}Content-Length: 2, 4\r\n`, '{}'],
  ['a length with a sign', `${host}Content-Length: +2\r\n`, '{}'],
  ['a negative length', `${host}Content-Length: -2\r\n`],
  ['a hexadecimal length', `${host}Content-Length: 0x2\r\n`, '{}'],
  ['a length of words', `${host}Content-Length: two\r\n`, '{}'],
  ['a space before the colon', `${host}Content-Length : 2\r\n`, '{}'],
  ['a folded line', `${host}X-A: b\r\n c\r\nContent-Length: 2\r\n`, '{}'],
  ['a space in the name', `${host}Transfer Encoding: chunked\r\n`, '0\r\n\r\n'],
  ['an unknown encoding', `${host}Transfer-Encoding: gzip\r\n`, '0\r\n\r\n'],
  [
    'chunks that are not the last encoding',
    `${host}Transfer-Encoding: chunked, gzip\r\n`,
    '0\r\n\r\n',
  ],
  [
    'an encoding behind a control character',
    `${host}Transfer-Encoding: \x0bchunked\r\n`,
    '0\r\n\r\n',
  ],
  ['a NUL in a value', `${host}X-A: a\0b\r\nContent-Length: 2\r\n`, '{}'],
  ['a line that ends with LF alone', `${host}X-A: b\nContent-Length: 2\r\n`, '{}'],
  ['a line without a colon', `${host}Content-Length\r\n`, '{}'],
  ['an empty name', `${host}: b\r\nContent-Length: 2\r\n`, '{}'],
  ['a chunk size of words', host + chunked, 'zz\r\n{}\r\n0\r\n\r\n'],
  ['a chunk size with a sign', host + chunked, '+2\r\n{}\r\n0\r\n\r\n'],
  ['a chunk size beyond any number', host + chunked, `${'f'.repeat(40)}\r\n{}\r\n0\r\n\r\n`],
  ['a chunk that is longer than its size', host + chunked, '2\r\n{}}}\r\n0\r\n\r\n'],
]

const versions: readonly [name: string, line: string][] = [
  ['a version without a number', 'GET /readyz HTTP/x\r\n'],
  ['version 2 in text', 'GET /readyz HTTP/2.0\r\n'],
  ['no version', 'GET /readyz\r\n'],
  ['a method of signs', '{}@ /readyz HTTP/1.1\r\n'],
  ['a path with a space', 'GET /ready z HTTP/1.1\r\n'],
]

const statusesOf = (answer: string) => answer.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9))

describe('is refused, and nothing after it is a request:', () => {
  test.each(framings)('%s', async (_, head, body = '') => {
    const answer = await exchangeBytes(gateway.port(), `${start}${head}\r\n${body}${second}`)
    const statuses = statusesOf(answer) ?? []
    // Refused before its body is parsed, whose fault ends the connection.
    expect(statuses.slice(1, 2), answer).toBeOneOf([[], ['400']])
    expect(statuses.length, answer).toBeLessThanOrEqual(2)
    expect(answer).not.toContain('"ok"')
    expect(Number(statuses[0] ?? 400), answer).toBeWithin(400, 506)
  })

  test.each(versions)('%s', async (_, line) => {
    const answer = await exchangeBytes(gateway.port(), `${line}${host}\r\n${second}`)
    expect(statusesOf(answer)?.length ?? 0, answer).toBeLessThanOrEqual(1)
    expect(answer).not.toContain('"ok"')
  })
})

test('a request of this form is answered, and the one after it', async () => {
  const answer = await exchangeBytes(
    gateway.port(),
    `${start}${host}Content-Length: 2\r\n\r\n{}${second}`,
  )
  expect(statusesOf(answer)).toEqual(['401', '200'])
})

test('two hosts are refused', async () => {
  const answer = await exchangeBytes(
    gateway.port(),
    `GET /readyz HTTP/1.1\r\n${host}${second.slice(second.indexOf('Host'))}`,
  )
  expect(statusesOf(answer)).toEqual(['400'])
})

test('a line break in a path or a parameter reaches no header', async () => {
  const paths = ['/v1/files/%0d%0aset-cookie:%20a=b', '/v1/models/%0d%0aset-cookie:%20a=b']
  for (const path of paths) {
    const response = await gateway.request(path)
    expect(response.status).toBeWithin(400, 500)
    expect(response.headers.get('set-cookie')).toBeNull()
    await response.text()
  }
})
