import { describe, expect, test } from 'bun:test'
import { chooseProtocol, isUpgrade, readCredential } from '#auth/credentials.ts'
import { createApiKey } from '#auth/key-format.ts'

/** Where the credential of a request is read, in memory. */
const key = createApiKey()
const keyProtocol = `openai-insecure-api-key.${key}`

const read = (headers: Record<string, string>, url = 'http://sluice.test/v1/models') =>
  readCredential(new Request(url, { headers }), { bearerKeys: true, originOf: () => url })

const handshake = (offered: string, more: Record<string, string> = {}) => ({
  upgrade: 'WebSocket',
  ...(offered === '' ? {} : { 'sec-websocket-protocol': offered }),
  ...more,
})

describe('the credential of a handshake', () => {
  const url = 'http://sluice.test/v1/realtime'

  test('is the query parameter token, before any header', () => {
    const headers = handshake(keyProtocol, { 'x-api-key': createApiKey() })
    expect(read(headers, `${url}?token=a.b.c`)).toEqual({ kind: 'jwt', token: 'a.b.c' })
  })

  test('is a subprotocol that names a key or a token, among others', () => {
    expect(read(handshake(`realtime, ${keyProtocol}`), url)).toEqual({ kind: 'api-key', key })
    const named = handshake('openai-insecure-api-key.a.b.c,beta')
    expect(read(named, url)).toEqual({ kind: 'jwt', token: 'a.b.c' })
  })

  test('is a header if neither has one', () => {
    for (const offered of ['', 'realtime', 'openai-insecure-api-key.']) {
      const headers = handshake(offered, { 'x-api-key': key })
      expect(read(headers, `${url}?token=`)).toEqual({ kind: 'api-key', key })
    }
  })

  test('is in the headers of a request that upgrades to something else', () => {
    const headers = { upgrade: 'h2c', 'sec-websocket-protocol': keyProtocol }
    expect(() => read(headers, `${url}?token=a.b.c`)).toThrow('Send a credential')
    expect(isUpgrade(new Request(url, { headers }))).toBe(false)
    expect(isUpgrade(new Request(url, { headers: handshake('') }))).toBe(true)
  })
})

test('any number of spaces may follow the scheme, but the scheme comes first', () => {
  expect(read({ authorization: `Bearer   ${key}` })).toEqual({ kind: 'api-key', key })
  expect(() => read({ authorization: `Token bearer ${key}` })).toThrow('Send a credential')
})

test.each<[string, string | null]>([
  ['', null],
  [' , ', null],
  ['realtime, beta', 'realtime'],
  [`${keyProtocol}, realtime`, 'realtime'],
  [keyProtocol, keyProtocol],
])('of the subprotocols %p, %p is chosen', (offered, chosen) => {
  const headers = { 'sec-websocket-protocol': offered }
  expect(chooseProtocol(new Request('http://sluice.test', { headers }))).toBe(chosen)
})
