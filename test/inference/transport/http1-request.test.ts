import { describe, expect, test } from 'bun:test'
import {
  bytesOf,
  endpointOf,
  headersOf,
  renderRequest,
} from '#inference/transport/http1-request.ts'
import type { UpstreamHttpRequest } from '#inference/transport.ts'

describe('the endpoint of a URL', () => {
  test.each([
    [
      'https://models.example/v1/chat?a=1',
      {
        origin: 'https://models.example',
        hostname: 'models.example',
        port: 443,
        tls: true,
        serverName: 'models.example',
        host: 'models.example',
        pathAndQuery: '/v1/chat?a=1',
      },
    ],
    [
      'http://models.example',
      {
        origin: 'http://models.example',
        hostname: 'models.example',
        port: 80,
        tls: false,
        serverName: 'models.example',
        host: 'models.example',
        pathAndQuery: '/',
      },
    ],
    [
      'https://[2001:db8::1]:8443/',
      {
        origin: 'https://[2001:db8::1]:8443',
        hostname: '2001:db8::1',
        port: 8443,
        tls: true,
        serverName: '',
        host: '[2001:db8::1]:8443',
        pathAndQuery: '/',
      },
    ],
    ['https://192.0.2.1/', { hostname: '192.0.2.1', port: 443, serverName: '' }],
  ])('%s', (url, expected) => {
    expect(endpointOf(url)).toMatchObject(expected)
  })

  test.each([
    ['models.example', 'the URL of the upstream is invalid'],
    ['ftp://models.example', 'the URL of the upstream is neither http nor https'],
    [
      'https://:secret@models.example',
      'the URL of the upstream contains credentials; use its key instead',
    ],
    [
      'https://name@models.example',
      'the URL of the upstream contains credentials; use its key instead',
    ],
  ])('%s is refused', (url, message) => {
    expect(() => endpointOf(url)).toThrow(new Error(message))
  })
})

describe('the bytes of a request', () => {
  const endpoint = endpointOf('https://models.example/v1')
  const render = (given: Partial<UpstreamHttpRequest>) =>
    renderRequest(endpoint, {
      upstream: 'an-upstream',
      url: 'https://models.example/v1',
      method: 'POST',
      headers: {},
      signal: new AbortController().signal,
      ...given,
    })
  const written = (given: Partial<UpstreamHttpRequest>) =>
    Buffer.from(bytesOf(render(given))).toString()
  const headers = [
    'host: models.example',
    'user-agent: sluice/0.1',
    'accept-encoding: identity',
    'connection: keep-alive',
  ]
  const lines = (...all: string[]) => all.map((line) => `${line}\r\n`).join('')

  test('without a body have neither length nor body', () => {
    expect(written({ method: 'GET' })).toBe(lines('GET /v1 HTTP/1.1', ...headers, ''))
  })

  test('of a GET with a body tell its length', () => {
    const get = lines('GET /v1 HTTP/1.1', ...headers, 'content-length: 1', '')
    expect(written({ method: 'GET', body: 'x' })).toBe(`${get}x`)
  })

  test('of a POST without a body tell the length 0', () => {
    const post = lines('POST /v1 HTTP/1.1', ...headers, 'content-length: 0', '')
    expect(written({})).toBe(post)
  })

  test('follow a body larger than most', () => {
    const head = lines('POST /v1 HTTP/1.1', ...headers, 'content-length: 200000', '')
    const body = 'é'.repeat(100_000)
    expect(written({ body })).toBe(head + body)
    expect(written({ body: Buffer.from(body) })).toBe(head + body)
  })

  test('end with the identity of the request, unless its headers have one', () => {
    const trace = { traceparent: '00-a-b-01', tracestate: 'c=d', span: null }
    const identity = { requestId: 'req_1', trace, exchange: undefined }
    const ends = (given: Partial<UpstreamHttpRequest>) =>
      written({ method: 'GET', ...given }).split('connection: keep-alive\r\n')[1]
    expect(ends({ identity })).toBe(
      lines('x-request-id: req_1', 'traceparent: 00-a-b-01', 'tracestate: c=d', ''),
    )
    expect(ends({ identity: { ...identity, trace: { ...trace, tracestate: null } } })).toBe(
      lines('x-request-id: req_1', 'traceparent: 00-a-b-01', ''),
    )
    expect(ends({ identity: { ...identity, trace: null } })).toBe(lines('x-request-id: req_1', ''))
    expect(ends({ identity, headers: { 'X-Request-Id': 'own', traceparent: 'own' } })).toBe('\r\n')
  })

  test('depend on the endpoint and the method, though the headers are the same object', () => {
    const shared = { accept: '*/*' }
    expect(written({ headers: shared })).toStartWith('POST /v1 ')
    expect(written({ headers: shared, method: 'GET' })).toStartWith('GET /v1 ')
    const other = renderRequest(endpointOf('https://other.example/v2'), {
      upstream: 'an-upstream',
      url: 'https://other.example/v2',
      method: 'GET',
      headers: shared,
      signal: new AbortController().signal,
    })
    expect(other.head).toStartWith('GET /v2 HTTP/1.1\r\nhost: other.example\r\n')
  })
})

test.each([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])('the header %s cannot be set', (name) => {
  const endpoint = endpointOf('https://models.example/v1')
  const signal = new AbortController().signal
  const headers = { [name.toUpperCase()]: 'x' }
  const request = { upstream: 'u', url: '', method: 'GET', headers, signal } as const
  expect(() => headersOf(endpoint, request)).toThrow(`the request header ${name} cannot be set`)
})
