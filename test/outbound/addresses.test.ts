import { expect, test } from 'bun:test'
import { addressOfHost, isMetadataAddress, isPublicAddress } from '#outbound/addresses.ts'

const notPublic: Readonly<Record<string, readonly string[]>> = {
  'loopback and this host': ['127.0.0.1', '127.255.255.254', '::1', '0.0.0.0', '::'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fd00::1', 'fec0::1'],
  'link-local and shared': ['169.254.1.1', 'fe80::1', 'fe80::1%eth0', '100.64.0.1'],
  'multicast and broadcast': ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1'],
  reserved: [
    '0.1.2.3',
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '240.0.0.1',
    '2001:db8::1',
    '100::1',
  ],
  'an IPv4 address inside of IPv6': [
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '::ffff:8.8.8.8',
    '::7f00:1',
    '64:ff9b::a00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::a00:1',
    '2002:a00:1::',
    '2001::1',
  ],
  'outside of what is given out': ['4000::1', '1::1', '5f00::1'],
  metadata: ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192', '168.63.129.16'],
  'no address': ['', 'localhost', '127.1', '0x7f.0.0.1', '010.8.8.8', '2130706433', '8.8.8.8 '],
}

for (const [kind, addresses] of Object.entries(notPublic)) {
  test(`not public: ${kind}`, () => {
    expect(addresses.filter(isPublicAddress)).toEqual([])
  })
}

test('public addresses are public', () => {
  const addresses = [
    '8.8.8.8',
    '1.1.1.1',
    '172.32.0.1',
    '100.128.0.1',
    '2001:4860:4860::8888',
    '2a00::1',
  ]
  expect(addresses.filter((address) => !isPublicAddress(address))).toEqual([])
})

test('metadata addresses are detected in every form, and all link-local addresses', () => {
  const metadata = [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    'fd00:ec2::254',
    'fe80::1',
    '168.63.129.16',
  ]
  expect(metadata.filter((address) => !isMetadataAddress(address))).toEqual([])
  expect(['10.0.0.1', '127.0.0.1', 'fd00::1', '8.8.8.8'].filter(isMetadataAddress)).toEqual([])
})

test('a URL host is an address in every notation that a URL parser accepts', () => {
  const hosts = ['2130706433', '0x7f.1', '017700000001', '127.1', '①②⑦.0.0.1', '[::ffff:127.0.0.1]']
  const addresses = hosts.map((host) => addressOfHost(new URL(`https://${host}/`).hostname))
  expect(addresses).toEqual([...Array.from({ length: 5 }, () => '127.0.0.1'), '::ffff:7f00:1'])
  expect(addressOfHost('example.com')).toBeNull()
})
