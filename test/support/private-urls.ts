/** Spellings of addresses and names that resolve to the upstream's own machine or network. */
export const privateUrls = [
  // loopback
  'http://127.0.0.1/a.png',
  'http://127.0.0.1:8080/a.png',
  'http://127.0.0.1./a.png',
  'http://127.1/a.png',
  'http://127.255.255.254/a.png',
  'https://2130706433/a.png',
  'https://0x7f.1/a.png',
  'https://0x7f000001/a.png',
  'https://0177.0.0.1/a.png',
  'https://%31%32%37.0.0.1/a.png',
  'https://１２７.0.0.1/a.png',
  'https://127。0。0。1/a.png',
  'https://[::1]/a.png',
  'https://[0:0:0:0:0:0:0:1]/a.png',
  'https://user:secret@127.0.0.1/a.png',
  'HTTP://127.0.0.1/a.png',
  // unspecified
  'https://0/a.png',
  'http://0.0.0.0/a.png',
  'http://[::]/a.png',
  // private
  'https://10.0.0.1/a.png',
  'https://172.16.0.1/a.png',
  'https://172.31.255.255/a.png',
  'https://192.168.1.1/a.png',
  'https://100.64.0.1/a.png',
  'https://[fd00::1]/a.png',
  'https://[fc00::1]/a.png',
  'https://[fec0::1]/a.png',
  // link-local and metadata services
  'https://169.254.169.254/latest/meta-data',
  'https://169.254.1.1/a.png',
  'https://[fe80::1]/a.png',
  'https://[fd00:ec2::254]/latest/meta-data',
  'https://100.100.100.200/latest/meta-data',
  'https://168.63.129.16/machine',
  'https://metadata.google.internal/a.png',
  // multicast, broadcast and reserved
  'https://224.0.0.1/a.png',
  'https://255.255.255.255/a.png',
  'https://240.0.0.1/a.png',
  // IPv4 inside IPv6
  'https://[::ffff:127.0.0.1]/a.png',
  'https://[::ffff:10.0.0.1]/a.png',
  'https://[::ffff:a9fe:a9fe]/a.png',
  'https://[0:0:0:0:0:ffff:7f00:1]/a.png',
  'https://[::127.0.0.1]/a.png',
  'https://[64:ff9b::7f00:1]/a.png',
  'https://[2002:7f00:1::]/a.png',
  // names
  'http://localhost/a.png',
  'http://LOCALHOST/a.png',
  'http://localhost.:8080/a.png',
  'https://api.localhost/a.png',
  'https://localhost.localdomain/a.png',
  'https://printer.local/a.png',
  'https://router.lan/a.png',
  'https://nas.home.arpa/a.png',
  'https://db.internal./a.png',
  'https://intranet/a.png',
]

/** URLs whose host parsers disagree about. */
export const malformedUrls = [
  'http://',
  'http://:80/',
  'http://[::1/a.png',
  'http://[fe80::1%25eth0]/a.png',
  'http://example.com:99999/',
  'http://example.com\\@127.0.0.1/a.png',
  'http://127.0.0.1 @example.com/a.png',
  'http://example.com/a\r\nHost: 127.0.0.1',
]

export const publicUrls = [
  'https://example.com/a.png?b=c#d',
  'http://example.com/a b.png',
  'https://EXAMPLE.com./a.png',
  'https://8.8.8.8/a.png',
  'https://[2606:4700::1111]/a.png',
  'https://localhost.example.com/a.png',
  'https://notlocal.example/a.png',
]
