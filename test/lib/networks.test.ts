import { describe, expect, test } from 'bun:test'
import { canonicalAddress, createNetworks, networkFault } from '#lib/networks.ts'

describe('networks', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    [
      '10.0.0.0/8',
      ['10.0.0.0', '10.255.255.255', '::ffff:10.1.2.3', '::ffff:0a01:203'],
      ['11.0.0.0', '::10.1.2.3', '9.255.255.255'],
    ],
    ['192.0.2.7', ['192.0.2.7'], ['192.0.2.6', '192.0.2.8']],
    [
      '2001:db8::/33',
      ['2001:db8::1', '2001:db8:7fff:ffff::'],
      ['2001:db8:8000::', '2001:db7::', '32.1.13.184'],
    ],
    ['::1', ['::1', '0:0:0:0:0:0:0:1'], ['::2', '127.0.0.1', '0.0.0.1']],
    ['::ffff:10.0.0.0/104', ['10.1.2.3', '::ffff:10.1.2.3'], ['11.0.0.0']],
    ['0.0.0.0/0', ['1.2.3.4', '::ffff:1.2.3.4'], ['2001:db8::1']],
    ['::/0', ['2001:db8::1'], ['1.2.3.4']],
  ])('%s', (network, inside, outside) => {
    expect(networkFault(network)).toBeNull()
    const networks = createNetworks([network])
    expect(inside.filter((address) => !networks.includes(address))).toEqual([])
    expect(outside.filter((address) => networks.includes(address))).toEqual([])
  })

  test.each([
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '010.0.0.0/8',
    '0x0a.0.0.0/8',
    '2001:db8::/129',
    '::ffff:10.0.0.0/95',
    '1e1.0.0.0',
    ' 10.0.0.0/8',
    'fe80::1%eth0',
  ])('%p is refused', (text) => {
    expect(networkFault(text)).toContain('must be an address or a network')
  })

  test.each(['10.1.2.3/8', '192.0.2.1/31', '2001:db8::1/64', '2001:db8:ffff::/33'])(
    '%p has bits beyond its prefix',
    (text) => {
      expect(networkFault(text)).toBe('has address bits beyond its prefix length')
    },
  )

  test('each address has one notation', () => {
    expect(canonicalAddress('::ffff:127.0.0.1')).toBe('127.0.0.1')
    expect(canonicalAddress('2001:DB8:0:0::7')).toBe('2001:db8::7')
    expect(canonicalAddress('fe80::1%eth0')).toBe('fe80::1')
    expect(canonicalAddress('unknown')).toBeNull()
  })
})
