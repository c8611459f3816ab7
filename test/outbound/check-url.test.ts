import { expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { checkUrl, type UrlPolicy } from '#outbound/check-url.ts'

const everyHost: UrlPolicy = { hosts: ['*'], portsAllowed: [443], private: false }
const names: Readonly<Record<string, readonly string[]>> = {
  'public.example': ['93.184.216.34', '2606:2800:220:1::1'],
  'private.example': ['10.0.0.1'],
  'mixed.example': ['93.184.216.34', '192.168.0.1'],
  'mixed6.example': ['93.184.216.34', '::1'],
  'metadata.example': ['169.254.169.254'],
}
const resolve = async (hostname: string) => {
  const found = names[hostname]
  if (found === undefined) throw new Error('not found')
  return found
}

async function check(url: string, policy: Partial<UrlPolicy> = {}): Promise<string> {
  try {
    const options = { what: 'It', resolve }
    return (await checkUrl(new URL(url), { ...everyHost, ...policy }, options)).join(' ')
  } catch (error) {
    if (error instanceof AppError && error.kind === 'invalid_request') return error.message
    throw error
  }
}

const notPublic = 'It leads to an address that is not public.'
const refusals: readonly [url: string, sentence: string][] = [
  ['http://public.example/', 'It must begin with https://.'],
  ['file:///etc/passwd', 'It must begin with https://.'],
  ['https://user@public.example/', 'It must not hold credentials.'],
  ['https://user:word@public.example/', 'It must not hold credentials.'],
  ['https://public.example:8443/', 'It names a port that is not allowed here.'],
  ['https://absent.example/', 'It names a host that cannot be found.'],
  ['https://private.example/', notPublic],
  ['https://mixed.example/', notPublic],
  ['https://mixed6.example/', notPublic],
  ['https://metadata.example/', notPublic],
  ['https://127.0.0.1/', notPublic],
  ['https://2130706433/', notPublic],
  ['https://0x7f000001/', notPublic],
  ['https://0177.0.0.1/', notPublic],
  ['https://127.1/', notPublic],
  ['https://[::1]/', notPublic],
  ['https://[::ffff:127.0.0.1]/', notPublic],
  ['https://[::ffff:a9fe:a9fe]/', notPublic],
  ['https://[64:ff9b::a00:1]/', notPublic],
  ['https://[2002:7f00:1::]/', notPublic],
]

for (const [url, sentence] of refusals) {
  test(`refused: ${url}`, async () => {
    expect(await check(url)).toBe(sentence)
  })
}

test('a public host is allowed, with all its addresses', async () => {
  expect(await check('https://public.example/path')).toBe('93.184.216.34 2606:2800:220:1::1')
  expect(await check('https://8.8.8.8/')).toBe('8.8.8.8')
})

test('hosts are allowed by name, by subdomain, or all', async () => {
  const allowed = async (hosts: string[]) =>
    (await check('https://public.example/', { hosts })) !== notAllowed
  const notAllowed = 'It names a host that is not allowed here.'
  expect(await allowed(['public.example'])).toBe(true)
  expect(await allowed(['PUBLIC.example'])).toBe(true)
  expect(await allowed(['*.example'])).toBe(true)
  expect(await allowed(['*'])).toBe(true)
  expect(await allowed(['*.public.example'])).toBe(false)
  expect(await allowed(['lic.example'])).toBe(false)
  expect(await allowed(['other.example'])).toBe(false)
  expect(await allowed([])).toBe(false)
})

test('URLs of administrators may be private and plain http, but never metadata', async () => {
  const policy = { private: true, portsAllowed: [] }
  expect(await check('http://private.example:8000/', policy)).toBe('10.0.0.1')
  expect(await check('http://127.0.0.1:8000/', policy)).toBe('127.0.0.1')
  expect(await check('http://metadata.example/', policy)).toBe(notPublic)
  expect(await check('http://[::ffff:169.254.169.254]/', policy)).toBe(notPublic)
})
