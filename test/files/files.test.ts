import { describe, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { outcome, principalOf } from '#test/support/file-gateway.ts'
import { ann, bob, fresh, useFileGateway } from './fixture.ts'

const fixture = useFileGateway({
  hooks: {
    async joinCollections(_transaction, _caller, _fileId, collections) {
      throw new AppError('not_found', `no ${collections}`, { param: 'collections' })
    },
  },
})

function patch(id: string, json: unknown, headers: Record<string, string> = {}, who = ann) {
  return fixture.gateway.send(who, `/v1/files/${id}`, { method: 'PATCH', json, headers })
}

test('a file record has all fields', async () => {
  const { gateway } = fixture
  const folder = await gateway.folder(ann, fresh('folder'))
  const id = await gateway.upload(ann, 'a.txt', {
    folderId: folder,
    text: 'hello',
    attributes: { lang: 'en', page: 3, draft: true },
    purpose: 'assistants',
  })
  const { body, headers } = await gateway.send(ann, `/v1/files/${id}`)
  const { created_at, created_at_iso, updated_at, ...rest } = body
  expect(rest).toEqual({
    id,
    object: 'file',
    filename: 'a.txt',
    name: 'a.txt',
    folder_id: folder,
    bytes: 5,
    owner: { id: principalOf(ann).userId, name: 'ann' },
    created_by: principalOf(ann).userId,
    mime_type: 'text/plain',
    sha256: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
    purpose: 'assistants',
    status: 'processed',
    retrieval_status: null,
    retrieval: null,
    attributes: { lang: 'en', page: 3, draft: true },
    shared: false,
    my_role: 'owner',
    version: 1,
    expires_at: null,
    expires_at_iso: null,
  })
  expect(created_at).toBe(Math.floor(Date.parse(String(created_at_iso)) / 1_000))
  expect(created_at_iso).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  expect(updated_at).toBe(created_at_iso)
  expect(headers.get('etag')).toBe('"1"')
})

describe('attributes', () => {
  test('are merged, and removed by null', async () => {
    const id = await fixture.gateway.upload(ann, fresh('f'), { attributes: { a: 1, b: 'x' } })
    const merged = await patch(id, { attributes: { b: null, c: false, a: 'y' } })
    expect(merged.body['attributes']).toEqual({ a: 'y', c: false })
    expect((await patch(id, { attributes: {} })).body['attributes']).toEqual({ a: 'y', c: false })
    expect((await patch(id, { attributes: null })).body['attributes']).toEqual({})
  })

  const many = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, at]))
  const refused: [string, unknown, string][] = [
    ['a list', [], 'attributes'],
    ['a text', 'x', 'attributes'],
    ['an object in them', { a: {} }, 'attributes.a'],
    ['a list in them', { a: ['b'] }, 'attributes.a'],
    ['17 of them', many, 'attributes'],
    ['a key with a space', { 'a b': 1 }, 'attributes'],
    ['an empty key', { '': 1 }, 'attributes'],
    ['a key with SQL', { "a'; drop table file; --": 1 }, 'attributes'],
    ['a long key', { ['k'.repeat(65)]: 1 }, 'attributes'],
    ['a long text', { a: 'x'.repeat(513) }, 'attributes.a'],
    ['a NUL', { a: '\0' }, 'attributes.a'],
    ['half a character', { a: '\ud800' }, 'attributes.a'],
  ]
  test.each(refused)('%s is refused', async (_, attributes, param) => {
    const id = await fixture.gateway.upload(ann, fresh('f'), { attributes: { kept: 1 } })
    const { status, body } = await patch(id, { attributes, name: fresh('renamed') })
    expect([status, Object(body['error']).param]).toEqual([422, param])
    const after = (await fixture.gateway.send(ann, `/v1/files/${id}`)).body
    expect([after['attributes'], after['version']]).toEqual([{ kept: 1 }, 1])
  })

  test('may have any well-formed key', async () => {
    const id = await fixture.gateway.upload(ann, fresh('f'))
    const text = '{"attributes":{"__proto__":"x","a.b-c_D":1e300,"constructor":true}}'
    const { body } = await patch(id, text)
    expect(JSON.stringify(body['attributes'])).toContain('"__proto__":"x"')
    expect(Object.keys(Object(body['attributes'])).length).toBe(3)
  })
})

describe('a version', () => {
  test('increases with each change, and If-Match can require it', async () => {
    const { gateway } = fixture
    const id = await gateway.upload(ann, fresh('f'))
    const change = (tag: string) => patch(id, { attributes: { at: tag } }, { 'if-match': tag })
    expect(outcome(await change('"1"'))).toBe('200')
    const late = await change('"1"')
    expect([outcome(late), late.headers.get('etag')]).toEqual(['412 precondition_failed', '"2"'])
    expect(outcome(await change('W/"2"'))).toBe('412 precondition_failed')
    expect(outcome(await change('"1", "2"'))).toBe('200')
    const last = await change('*')
    expect([last.body['version'], last.headers.get('etag')]).toEqual([4, '"4"'])
    const remove = (tag: string, query = '') =>
      gateway.send(ann, `/v1/files/${id}${query}`, {
        method: 'DELETE',
        headers: { 'if-match': tag },
      })
    const kept = await remove('"3"')
    expect([outcome(kept), kept.headers.get('etag')]).toEqual(['412 precondition_failed', '"4"'])
    expect(outcome(await remove('"3"', '?permanent=true'))).toBe('412 precondition_failed')
    expect(outcome(await remove('"4"'))).toBe('200')
  })

  test('is not disclosed to users who may not see the file', async () => {
    const id = await fixture.gateway.upload(ann, fresh('f'))
    const response = await patch(id, { name: 'x' }, { 'if-match': '"9"' }, bob)
    expect(outcome(response)).toBe('404 not_found')
  })
})

describe('the content of a file', () => {
  const content = async (text: string) => ({
    content: await fixture.gateway.storage.put(bytesOf(text), { bytesMax: 100 }),
    mimeType: 'text/markdown',
  })
  async function* bytesOf(text: string) {
    yield Buffer.from(text)
  }

  test('is replaced by editors, after a final check', async () => {
    const { files, upload, share, changes } = fixture.gateway
    const id = await upload(ann, fresh('f'), { text: 'one' })
    const replace = async (who: typeof ann, check = () => {}) =>
      files.replaceContent(principalOf(who), id, await content('twenty'), check)
    await expect(replace(bob)).rejects.toMatchObject({ status: 404 })
    await share(ann, `/v1/files/${id}`, { type: 'user', subject: 'bob' }, 'viewer')
    await expect(replace(bob)).rejects.toMatchObject({ status: 403 })
    const refuse = () => {
      throw new AppError('precondition_failed', 'no')
    }
    await expect(replace(ann, refuse)).rejects.toMatchObject({ status: 412 })
    changes.length = 0
    expect(await replace(ann)).toMatchObject({
      bytes: 6,
      mime_type: 'text/markdown',
      version: 2,
    })
    expect(changes).toEqual([{ kind: 'content', fileIds: [id] }])
  })

  test('replaces that of the same name with on_conflict=replace', async () => {
    const { gateway } = fixture
    const folderId = await gateway.folder(ann, fresh('folder'))
    const first = await gateway.upload(ann, 'Same.txt', { folderId, text: 'one' })
    const second = await gateway.upload(ann, 'same.TXT', {
      folderId,
      text: 'two more',
      onConflict: 'replace',
    })
    const { body } = await gateway.send(ann, `/v1/files/${second}`)
    expect([second, body['bytes'], body['version'], body['name']]).toEqual([
      first,
      8,
      2,
      'Same.txt',
    ])
    await gateway.folder(ann, 'dir', folderId)
    const upload = gateway.upload(ann, 'DIR', { folderId, onConflict: 'replace' })
    await expect(upload).rejects.toMatchObject({ wireCode: 'name_conflict' })
  })

  test('must be sent again if it is no longer stored', async () => {
    const { storage, upload } = fixture.gateway
    const kept = await content('soon gone')
    await storage.remove(kept.content.sha256)
    const gone = upload(ann, fresh('f'), kept)
    await expect(gone).rejects.toMatchObject({ status: 503 })
  })
})

test('an exception of a hook is reported and rolls back the change', async () => {
  const { gateway } = fixture
  const folderId = await gateway.folder(ann, fresh('folder'))
  const upload = gateway.upload(ann, 'x.txt', { folderId, collections: ['nowhere'] })
  await expect(upload).rejects.toMatchObject({ status: 404, param: 'collections' })
  const { body } = await gateway.send(ann, `/v1/files/children?folder_id=${folderId}`)
  expect(body['data']).toEqual([])
})

test('a copy has the same content and attributes, and is independent', async () => {
  const { gateway } = fixture
  const id = await gateway.upload(ann, fresh('f'), { attributes: { a: 1 }, purpose: 'batch' })
  const name = fresh('copy')
  const response = await gateway.send(ann, `/v1/files/${id}/copy`, { json: { name } })
  const source = (await gateway.send(ann, `/v1/files/${id}`)).body
  expect([response.status, response.body]).toMatchObject([
    201,
    { name, sha256: source['sha256'], attributes: { a: 1 }, purpose: 'batch', version: 1 },
  ])
  await gateway.send(ann, `/v1/files/${id}?permanent=true`, { method: 'DELETE' })
  expect(outcome(await gateway.send(ann, `/v1/files/${response.body['id']}`))).toBe('200')
  const again = await gateway.send(ann, `/v1/files/${response.body['id']}/copy`, { json: {} })
  expect(outcome(again)).toBe('409 name_conflict')
  const json = { on_conflict: 'rename' }
  const numbered = await gateway.send(ann, `/v1/files/${response.body['id']}/copy`, { json })
  expect(numbered.body['name']).toBe(`${name} (2)`)
})

test('hooks receive every change with the ids of the files', async () => {
  const { gateway } = fixture
  const top = await gateway.folder(ann, fresh('top'))
  const inner = await gateway.folder(ann, 'inner', top)
  const { changes } = gateway
  changes.length = 0
  const one = await gateway.upload(ann, 'one', { folderId: inner })
  const two = await gateway.upload(ann, 'two', { folderId: top })
  const files = [one, two].toSorted()
  await gateway.send(ann, `/v1/folders/${top}`, { method: 'PATCH', json: { name: fresh('new') } })
  const to = await gateway.folder(ann, fresh('to'))
  await gateway.send(ann, `/v1/folders/${top}/move`, { json: { folder_id: to } })
  await gateway.send(ann, `/v1/folders/${top}?recursive=true`, { method: 'DELETE' })
  await gateway.send(ann, `/v1/folders/${top}/restore`, { method: 'POST' })
  await gateway.send(ann, `/v1/files/${one}?permanent=true`, { method: 'DELETE' })
  const received = changes.map(({ kind, fileIds }) => [kind, ...fileIds.toSorted()])
  expect(received).toEqual([
    ['content', one],
    ['content', two],
    ['moved', ...files],
    ['trashed', ...files],
    ['restored', ...files],
    ['deleted', one],
  ])
})
