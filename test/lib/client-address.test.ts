import { describe, expect, test } from 'bun:test'
import { createClientAddresses } from '#lib/client-address.ts'

const from = (address: string | null) => ({
  requestIP: () => (address === null ? null : { address }),
})
const request = (headers: Record<string, string>) =>
  new Request('http://gateway:8080/v1/x', { headers })

describe('the address of a client', () => {
  const trusted = ['10.0.0.0/8', '2001:db8::/32']
  test.each<[string, string, Record<string, string>, string]>([
    ['without a proxy is that of the connection', '192.0.2.1', {}, '192.0.2.1'],
    [
      'is that of the connection if it is not trusted',
      '192.0.2.1',
      { 'x-forwarded-for': '1.1.1.1' },
      '192.0.2.1',
    ],
    ['is that of the proxy without a header', '10.0.0.1', {}, '10.0.0.1'],
    ['is the last entry', '10.0.0.1', { 'x-forwarded-for': '192.0.2.9' }, '192.0.2.9'],
    [
      'is the last entry that is not trusted',
      '10.0.0.1',
      { 'x-forwarded-for': '1.1.1.1, 192.0.2.9, 10.2.3.4,10.9.9.9' },
      '192.0.2.9',
    ],
    [
      'never is an entry before an untrusted one',
      '10.0.0.1',
      { 'x-forwarded-for': '10.5.5.5, 192.0.2.9' },
      '192.0.2.9',
    ],
    [
      'is the first entry if all are trusted',
      '10.0.0.1',
      { 'x-forwarded-for': '10.5.5.5, 10.6.6.6' },
      '10.5.5.5',
    ],
    [
      'is read from mapped addresses',
      '::ffff:10.0.0.1',
      { 'x-forwarded-for': '::ffff:192.0.2.9' },
      '192.0.2.9',
    ],
    ['is read without ports', '10.0.0.1', { 'x-forwarded-for': '192.0.2.9:4711' }, '192.0.2.9'],
    [
      'is read without ports of IPv6',
      '10.0.0.1',
      { 'x-forwarded-for': '[2001:DB9::1]:4711' },
      '2001:db9::1',
    ],
    [
      'is that of the proxy behind garbage',
      '10.0.0.1',
      { 'x-forwarded-for': '192.0.2.9, unknown' },
      '10.0.0.1',
    ],
    [
      'is the last known one before garbage',
      '10.0.0.1',
      { 'x-forwarded-for': '192.0.2.9, x, 10.2.2.2' },
      '10.2.2.2',
    ],
    [
      'is read from Forwarded',
      '2001:db8::5',
      { forwarded: 'for=1.1.1.1, for="[2001:db9::1]:99";proto=https' },
      '2001:db9::1',
    ],
    [
      'is read from X-Forwarded-For rather than Forwarded',
      '10.0.0.1',
      { forwarded: 'for=1.1.1.1', 'x-forwarded-for': '192.0.2.9' },
      '192.0.2.9',
    ],
    [
      'is that of the proxy for an obfuscated Forwarded',
      '10.0.0.1',
      { forwarded: 'for=_hidden' },
      '10.0.0.1',
    ],
  ])('%s', (_, peer, headers, expected) => {
    expect(createClientAddresses(trusted).of(request(headers), from(peer))).toBe(expected)
  })

  test('no proxy is trusted by default, and without a connection there is none', () => {
    const headers = { 'x-forwarded-for': '192.0.2.9' }
    expect(createClientAddresses([]).of(request(headers), from('10.0.0.1'))).toBe('10.0.0.1')
    expect(createClientAddresses(trusted).of(request(headers), from(null))).toBeNull()
    expect(createClientAddresses(['0.0.0.0/0']).of(request(headers), null)).toBeNull()
  })
})

describe('the origin that a client used', () => {
  const trusted = ['10.0.0.0/8']
  const https = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'llm.example.com' }
  test.each<[string, string, Record<string, string>, string]>([
    ['comes from a trusted proxy', '10.0.0.1', https, 'https://llm.example.com'],
    ['comes from no other client', '192.0.2.1', https, 'http://gateway:8080'],
    [
      'is the last of a list',
      '10.0.0.1',
      { 'x-forwarded-proto': 'http,https', 'x-forwarded-host': 'evil.example, llm.example.com' },
      'https://llm.example.com',
    ],
    [
      'has no other scheme',
      '10.0.0.1',
      { 'x-forwarded-proto': 'javascript' },
      'http://gateway:8080',
    ],
    ['has no user and path', '10.0.0.1', { 'x-forwarded-host': 'a@b/c' }, 'http://gateway:8080'],
  ])('%s', (_, peer, headers, expected) => {
    expect(createClientAddresses(trusted).originOf(request(headers), from(peer))).toBe(expected)
  })
})
