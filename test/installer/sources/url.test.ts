import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'
import { refusalOf, resolveSource } from './resolve-source.ts'

const content = new TextEncoder().encode('GGUF and so on')
const sha256 = 'AB'.repeat(32)
let origin: ModelOrigin

beforeEach(async () => {
  origin = await startModelOrigin()
})
afterEach(() => origin.stop())

const source = (url: string, hash: string | null = sha256) =>
  ({ kind: 'url', url, sha256: hash }) as const

test('a URL is one file with the length of the server and the hash of the request', async () => {
  const url = origin.put('/some/model.gguf', content)
  const { resolved, lines } = await resolveSource(source(`${url}?download=1`))
  expect(resolved.revision).toMatch(/^"\w+"$/)
  expect(resolved.files).toEqual([
    {
      path: 'model.gguf',
      bytes: content.length,
      sha256: sha256.toLowerCase(),
      from: { url: `${url}?download=1` },
    },
  ])
  expect(lines).toEqual([])
  expect(origin.questions.map(({ method }) => method)).toEqual(['HEAD'])
})

test('without a hash the file is not verified, which is logged', async () => {
  const url = origin.put('/model.gguf', content, { etag: 'W/"weak"' })
  const { resolved, lines } = await resolveSource(source(url, null))
  expect(resolved).toMatchObject({ revision: null, files: [{ sha256: null }] })
  expect(lines.join()).toContain('sha256')
})

for (const status of [403, 405, 501]) {
  test(`after status ${status} to HEAD the first byte is requested`, async () => {
    const url = origin.put('/model.gguf', content)
    origin.misbehave('/model.gguf', { kind: 'status', status })
    const { resolved } = await resolveSource(source(url))
    expect(resolved.files[0]?.bytes).toBe(content.length)
    expect(origin.questions.at(-1)).toMatchObject({ method: 'GET' })
    expect(origin.questions.at(-1)?.headers['range']).toBe('bytes=0-0')
  })
}

test('the length is known from a server without HEAD and ranges', async () => {
  const url = origin.put('/model.gguf', content, { hasRanges: false })
  origin.misbehave('/model.gguf', { kind: 'status', status: 405 })
  const { resolved } = await resolveSource(source(url))
  expect(resolved.files[0]?.bytes).toBe(content.length)
})

test('a missing length is unknown', async () => {
  const url = origin.put('/model.gguf', content)
  origin.misbehave('/model.gguf', { kind: 'headers', headers: { 'content-length': null } })
  const { resolved } = await resolveSource(source(url))
  expect(resolved.files[0]?.bytes).toBeNull()
})

for (const [disposition, path] of [
  ['attachment; filename="fine.gguf"', 'fine.gguf'],
  ['attachment; filename=plain.gguf', 'plain.gguf'],
  ['attachment; filename="x.bin"; filename*=UTF-8\'\'sp%C3%A4t.gguf', 'sp\u00e4t.gguf'],
  ['attachment; filename="../../up.gguf"', 'up.gguf'],
  ['attachment; filename="C:\\\\windows\\\\down.gguf"', 'down.gguf'],
  ['inline', 'download.gguf'],
  ["attachment; filename*=UTF-8''%ZZ.gguf", '%ZZ.gguf'],
] as const) {
  test(`the file name in ${disposition} is stored as ${path}`, async () => {
    const headers = { 'content-disposition': disposition }
    const url = origin.put('/files/download.gguf', content, { headers })
    const { resolved } = await resolveSource(source(url))
    expect(resolved.files[0]?.path).toBe(path)
  })
}

for (const [disposition, code] of [
  ['attachment; filename="run.sh"', 'unsafe_file_type'],
  ['attachment; filename="model"', 'unsafe_file_type'],
  ['attachment; filename="weights.pt"', 'unsafe_file_type'],
  ['attachment; filename="..gguf "', 'bad_source'],
  ["attachment; filename*=UTF-8''a%00.gguf", 'bad_source'],
  ["attachment; filename*=UTF-8''nul.gguf", 'bad_source'],
  [`attachment; filename="${'x'.repeat(300)}.gguf"`, 'bad_source'],
] as const) {
  test(`the file name in ${disposition.slice(0, 50)} is refused`, async () => {
    const headers = { 'content-disposition': disposition }
    const url = origin.put('/model.gguf', content, { headers })
    expect(await refusalOf(source(url))).toStartWith(code)
  })
}

test('a URL without a file name is rejected', async () => {
  const url = origin.put('/', content)
  expect(await refusalOf(source(url))).toStartWith('bad_source')
})

test('invalid URLs and hashes are rejected before any request', async () => {
  for (const url of ['', 'model.gguf', `http://127.0.0.1/${'x'.repeat(5_000)}.gguf`]) {
    expect(await refusalOf(source(url))).toStartWith('bad_source')
  }
  const url = origin.put('/model.gguf', content)
  expect(await refusalOf(source(url, 'abc'))).toStartWith('bad_source')
  expect(origin.questions).toEqual([])
})

test('forbidden hosts, ports and protocols receive no request', async () => {
  const url = origin.put('/model.gguf', content)
  const refuse = (text: string, settings = {}) => refusalOf(source(text), { settings })
  for (const settings of [
    { hosts: ['models.example'] },
    { ports: [443] },
    { privateHosts: false },
  ]) {
    expect(await refuse(url, settings)).toStartWith('host_not_allowed')
  }
  for (const text of [
    'ftp://127.0.0.1/model.gguf',
    'file:///etc/model.gguf',
    'http://169.254.169.254/model.gguf',
    url.replace('http://', 'http://user:password@'),
  ]) {
    expect(await refuse(text, { hosts: ['*'] })).toStartWith('host_not_allowed')
  }
  expect(await refuse('https://host.invalid/x.gguf', { hosts: ['*'] })).toStartWith(
    'upstream_unreachable',
  )
  expect(origin.questions).toEqual([])
})

test('redirects are followed and checked like any URL', async () => {
  origin.put('/real.gguf', content)
  const url = origin.put('/model.gguf', content)
  const to = (location: string) =>
    origin.misbehave('/model.gguf', { kind: 'status', status: 302, headers: { location } })
  to('/real.gguf')
  const { resolved } = await resolveSource(source(url))
  expect(resolved.files[0]).toMatchObject({ path: 'model.gguf', from: { url } })
  to('http://169.254.169.254/latest/x.gguf')
  expect(await refusalOf(source(url))).toStartWith('host_not_allowed')
  const again = { kind: 'status', status: 302, headers: { location: '/model.gguf' } } as const
  origin.alwaysMisbehave('/model.gguf', again)
  expect(await refusalOf(source(url))).toStartWith('upstream_invalid_answer')
})

test('statuses map to errors', async () => {
  const url = origin.put('/model.gguf', content)
  for (const [status, code] of [
    [401, 'source_auth_required'],
    [403, 'source_auth_required'],
    [404, 'not_found'],
    [429, 'upstream_overloaded'],
    [500, 'upstream_error'],
    [418, 'upstream_refused'],
  ] as const) {
    origin.alwaysMisbehave('/model.gguf', { kind: 'status', status })
    expect(await refusalOf(source(url))).toStartWith(code)
  }
})

test('a file over the size limit is rejected', async () => {
  const url = origin.put('/model.gguf', content)
  const settings = { fileBytesMax: content.length - 1 }
  expect(await refusalOf(source(url), { settings })).toStartWith('bad_source')
})
