import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { toFile } from 'openai'
import { asRecord } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

const bytesMax = 1_000_000

let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway({ files: { bytesMax, uploadsMax: 8, uploadGapMs: 1_000 } })
})
afterAll(() => gateway.stop())

test('the openai package uploads, lists, downloads and deletes files', async () => {
  const client = await gateway.openai()
  const content = 'Zeile eins\nZeile zwei\n'
  const made = await client.files.create({
    file: await toFile(Buffer.from(content), 'größe.txt', { type: 'application/pdf' }),
    purpose: 'assistants',
    expires_after: { anchor: 'created_at', seconds: 7_200 },
  })
  expect(made).toMatchObject({ object: 'file', filename: 'größe.txt', purpose: 'assistants' })
  expect(made.bytes).toBe(Buffer.byteLength(content))
  const listed: string[] = []
  for await (const file of client.files.list({ limit: 1 })) listed.push(file.id)
  expect(listed).toContain(made.id)
  expect((await client.files.retrieve(made.id)).status).toBe('processed')
  expect(await (await client.files.content(made.id)).text()).toBe(content)
  expect(await client.files.delete(made.id)).toMatchObject({ id: made.id, deleted: true })
  expect((await gateway.request(`/v1/files/${made.id}`)).status).toBe(404)
})

test('with a purpose, files of equal names are uploaded as different files', async () => {
  const client = await gateway.openai()
  const folder = asRecord(await (await gateway.post('/v1/folders', { name: 'equal' })).json())
  const folderId = String(folder['id'])
  const create = async (text: string, fields: object = {}) =>
    client.files.create({
      file: await toFile(Buffer.from(text), 'Equal.txt'),
      purpose: 'user_data',
      ...fields,
    })
  const made = [await create('one'), await create('two'), await create('three')]
  expect(new Set(made.map(({ id }) => id)).size).toBe(3)
  expect(made.map(({ filename }) => filename)).toEqual(['Equal.txt', 'Equal.txt', 'Equal.txt'])
  expect(await (await client.files.content(made[1]?.id ?? '')).text()).toBe('two')

  const inFolder = [
    await create('one', { folder_id: folderId }),
    await create('two', { folder_id: folderId }),
  ]
  const children = await gateway.request(`/v1/files/children?folder_id=${folderId}`)
  expect(asRecord(await children.json())['data']).toMatchObject([
    { name: 'Equal.txt' },
    { name: 'Equal.txt' },
  ])
  // The id that tells the names apart is not searched.
  const ending = inFolder[1]?.id.slice(-6) ?? ''
  const found = await gateway.request(`/v1/files/search?q=${ending}&folder_id=${folderId}`)
  expect(asRecord(await found.json())['data']).toEqual([])

  const second = `/v1/files/${inFolder[1]?.id}`
  const patch = (body: object) =>
    gateway.request(second, { method: 'PATCH', body: JSON.stringify(body) })
  const changed = await patch({ attributes: { year: 2026 }, name: 'Equal.txt' })
  expect(asRecord(await changed.json())).toMatchObject({ name: 'Equal.txt', version: 2 })
  expect((await patch({ name: 'other.txt' })).status).toBe(200)
  expect((await patch({ name: 'equal.txt' })).status).toBe(409)
})

test('a name that is taken is refused for good without a purpose, or if so demanded', async () => {
  await upload(Buffer.from('x'), { name: 'taken.txt' })
  const ways = [
    { name: 'taken.txt' },
    { name: 'taken.txt', purpose: 'user_data', on_conflict: 'fail' },
  ]
  for (const fields of ways) {
    const response = await send(Buffer.from('y'), fields)
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([409, 'false'])
    expect(await response.json()).toMatchObject({ error: { code: 'name_conflict' } })
  }
})

test('times are Unix seconds as in the openai package, with ISO fields beside them', async () => {
  const client = await gateway.openai()
  const before = Math.floor(Date.now() / 1_000)
  const made = await client.files.create({
    file: await toFile(Buffer.from('x'), 'dated.txt'),
    purpose: 'user_data',
    expires_after: { anchor: 'created_at', seconds: 7_200 },
  })
  const [listed] = (await client.files.list({ limit: 1 })).data
  for (const file of [made, await client.files.retrieve(made.id), listed]) {
    expect(file?.created_at).toBeWithin(before, before + 600)
    expect(Math.abs((file?.expires_at ?? 0) - (file?.created_at ?? 0) - 7_200)).toBeLessThan(60)
    const { created_at_iso, expires_at_iso } = Object(file)
    expect(Math.floor(Date.parse(created_at_iso) / 1_000)).toBe(file?.created_at ?? 0)
    expect(Math.floor(Date.parse(expires_at_iso) / 1_000)).toBe(file?.expires_at ?? 0)
  }
})

test('the MIME type comes from the content and the name, not from the client', async () => {
  const png = Buffer.from(
    '89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489',
    'hex',
  )
  const kinds: [string, Uint8Array, string][] = [
    ['picture.txt', png, 'image/png'],
    ['paper.pdf', Buffer.from('%PDF-1.7\n%\xe2\xe3\n'), 'application/pdf'],
    ['notes.md', Buffer.from('# Notes'), 'text/markdown'],
    ['data.csv', Buffer.from('a,b\n1,2'), 'text/csv'],
    ['paper.pdf.txt', Buffer.from('plain'), 'text/plain'],
    ['fake.png', Buffer.from('no picture'), 'text/plain'],
    ['drawing.xml', Buffer.from('<?xml version="1.0"?><svg xmlns="x"/>'), 'image/svg+xml'],
    ['blob', Buffer.from([0, 1, 2, 3]), 'application/octet-stream'],
    ['wide.txt', Buffer.from([0xff, 0xfe, 0x41, 0x00]), 'text/plain'],
  ]
  for (const [name, bytes, mimeType] of kinds) {
    const file = await upload(bytes, { name, on_conflict: 'rename' }, 'application/x-evil')
    expect([name, file['mime_type']]).toEqual([name, mimeType])
  }
})

test('an empty file is accepted', async () => {
  const file = await upload(new Uint8Array(), { name: 'empty.txt' })
  expect(file).toMatchObject({ bytes: 0, filename: 'empty.txt' })
  const response = await gateway.request(`/v1/files/${file['id']}/content`)
  expect(response.status).toBe(200)
  expect(await response.text()).toBe('')
})

test('a raw body is accepted with a name in the query', async () => {
  const response = await gateway.request('/v1/files?name=bare.txt&on_conflict=rename', {
    method: 'POST',
    body: 'bare bytes',
  })
  expect(response.status).toBe(201)
  expect(await response.json()).toMatchObject({ filename: 'bare.txt', bytes: 10 })
  const nameless = await gateway.request('/v1/files', { method: 'POST', body: 'x' })
  expect(nameless.status).toBe(422)
  expect(await nameless.json()).toMatchObject({ error: { param: 'name' } })
})

test('unknown, removed and invalid fields are refused by name', async () => {
  const refusals: [Record<string, string>, string, string][] = [
    [{ folder_path: '/a' }, 'folder_path_removed', 'folder_path'],
    [{ colour: 'red' }, 'unknown_field', 'colour'],
    [{ folder_id: 'abc' }, 'unprocessable', 'folder_id'],
    [{ attributes: '{' }, 'unprocessable', 'attributes'],
    [{ attributes: '{"a":{}}' }, 'unprocessable', 'attributes.a'],
    [{ collections: '"x"' }, 'unprocessable', 'collections'],
    [{ on_conflict: 'ask' }, 'unprocessable', 'on_conflict'],
    [{ purpose: 'a b' }, 'unprocessable', 'purpose'],
    [{ 'expires_after[anchor]': 'now' }, 'unprocessable', 'expires_after[anchor]'],
    [
      { 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '5' },
      'unprocessable',
      'expires_after[seconds]',
    ],
  ]
  for (const [fields, code, param] of refusals) {
    const response = await send(Buffer.from('x'), { name: 'refused.txt', ...fields })
    expect([fields, response.status]).toEqual([fields, 422])
    expect(await response.json()).toMatchObject({ error: { code, param } })
  }
  const children = await gateway.request('/v1/files/search?q=refused')
  expect(asRecord(await children.json())['data']).toEqual([])
})

test('a folder of another user is not found', async () => {
  const stranger = await gateway.token(['users'], 'stranger')
  const made = await gateway.request('/v1/folders', {
    method: 'POST',
    headers: { authorization: `Bearer ${stranger}` },
    body: JSON.stringify({ name: 'private' }),
  })
  const { id } = asRecord(await made.json())
  for (const folderId of [String(id), crypto.randomUUID()]) {
    const response = await send(Buffer.from('x'), { name: 'lost.txt', folder_id: folderId })
    expect(response.status).toBe(404)
  }
})

test('a file at the limit is accepted, one byte more is refused with and without Content-Length', async () => {
  const whole = Buffer.alloc(bytesMax, 'a')
  expect((await send(whole, { name: 'whole.txt' })).status).toBe(201)
  const more = Buffer.alloc(bytesMax + 1, 'a')
  const refused = await send(more, { name: 'more.txt' })
  expect(refused.status).toBe(413)
  expect(await refused.json()).toMatchObject({ error: { code: 'file_too_large' } })
  const bare = await gateway.request('/v1/files?name=more.txt', { method: 'POST', body: more })
  expect(bare.status).toBe(413)
  const streamed = await gateway.request('/v1/files?name=more.txt', {
    method: 'POST',
    body: new Blob([more]).stream(),
  })
  expect(streamed.status).toBe(413)
})

test('a body shorter than its Content-Length leaves nothing behind', async () => {
  const token = await gateway.token()
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(
    `POST /v1/files?name=short.txt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Length: 1000\r\n\r\nonly this',
  )
  await Bun.sleep(50)
  socket.destroy()
  const found = async () => {
    const response = await gateway.request('/v1/files/search?q=short.txt')
    return asRecord(await response.json())['data']
  }
  await eventually('the upload ends', () =>
    gateway.logLines.some((line) => line.includes('client_closed')),
  )
  expect(await found()).toEqual([])
})

test('stalled uploads are aborted; until then they count against the limit of their user', async () => {
  const token = await gateway.token()
  const responses = Array.from({ length: 5 }, () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write(
      `POST /v1/files?name=silent.txt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
        'Content-Length: 1000\r\n\r\n',
    )
    return new Promise<string>((resolve) => {
      socket.once('data', (data) => {
        resolve(`${data}`.slice(9, 12))
        socket.destroy()
      })
    })
  })
  const refused = await Promise.race(responses)
  const authorization = `Bearer ${await gateway.token(['users'], 'another')}`
  const headers = { authorization, 'content-type': 'text/plain' }
  const options = { method: 'POST', headers, body: 'x' }
  const other = await gateway.request('/v1/files?name=other.txt', options)
  expect([refused, other.status]).toEqual(['503', 201])
  expect((await Promise.all(responses)).toSorted()).toEqual(['408', '408', '503', '503', '503'])
  expect((await send(Buffer.from('x'), { name: 'after.txt' })).status).toBe(201)
})

test('one of two concurrent uploads of a name is refused', async () => {
  const both = await Promise.all([
    send(Buffer.from('first'), { name: 'Same.txt' }),
    send(Buffer.from('second'), { name: 'same.TXT' }),
  ])
  expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409])
  const replaced = await upload(Buffer.from('third'), { name: 'same.txt', on_conflict: 'replace' })
  expect(replaced).toMatchObject({ bytes: 5, version: 2 })
  const beside = await upload(Buffer.from('x'), { name: 'same.txt', on_conflict: 'rename' })
  expect(beside['name']).toBe('same (2).txt')
})

test('If-Match protects the content from concurrent replacement', async () => {
  const file = await upload(Buffer.from('old'), { name: 'living.txt' })
  const path = `/v1/files/${file['id']}/content`
  const etag = (await gateway.request(path)).headers.get('etag') ?? ''
  const put = (body: string, ifMatch: string) =>
    gateway.request(path, { method: 'PUT', headers: { 'if-match': ifMatch }, body })
  const refused = await put('new', '"another"')
  expect([refused.status, refused.headers.get('etag')]).toEqual([412, etag])
  const replaced = await put('new content', etag)
  expect(await replaced.json()).toMatchObject({ bytes: 11, version: 2 })
  expect((await put('lost update', etag)).status).toBe(412)
  expect(await (await gateway.request(path)).text()).toBe('new content')
  expect((await gateway.request('/v1/files/none/content', { method: 'PUT' })).status).toBe(404)
})

async function upload(
  bytes: Uint8Array,
  fields: Record<string, string>,
  type?: string,
): Promise<Record<string, unknown>> {
  const response = await send(bytes, fields, type)
  expect(response.status).toBe(201)
  return asRecord(await response.json())
}

/** Some clients send the fields after the file. */
async function send(
  bytes: Uint8Array,
  fields: Record<string, string>,
  type = 'text/plain',
): Promise<Response> {
  const form = new FormData()
  form.set('file', new File([new Uint8Array(bytes)], fields['name'] ?? 'file', { type }))
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  return gateway.request('/v1/files', { method: 'POST', body: form })
}
