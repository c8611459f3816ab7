import { describe, expect, test } from 'bun:test'
import { type ApiResponse, outcome } from '#test/support/file-gateway.ts'
import { ann, fresh, useFileGateway } from './fixture.ts'

const fixture = useFileGateway()

function errorOf({ status, body }: ApiResponse): unknown[] {
  const { code, param } = Object(body['error'])
  return [status, code, param]
}

/** Every endpoint with a body; `FILE` and `FOLDER` are replaced by ids of the test. */
const bodyRoutes: [string, string, string][] = [
  ['a new folder', 'POST', '/v1/folders'],
  ['a file', 'PATCH', 'FILE'],
  ['a folder', 'PATCH', 'FOLDER'],
  ['the move of a file', 'POST', 'FILE/move'],
  ['the move of a folder', 'POST', 'FOLDER/move'],
  ['a copy', 'POST', 'FILE/copy'],
  ['a restored file', 'POST', 'FILE/restore'],
  ['a restored folder', 'POST', 'FOLDER/restore'],
  ['the children', 'POST', '/v1/files/children'],
  ['a search', 'POST', '/v1/files/search'],
  ['a share', 'POST', 'FILE/shares'],
]

async function pathOf(path: string): Promise<string> {
  const { gateway } = fixture
  if (path.startsWith('FILE')) {
    return path.replace('FILE', `/v1/files/${await gateway.upload(ann, fresh('file'))}`)
  }
  if (!path.startsWith('FOLDER')) return path
  return path.replace('FOLDER', `/v1/folders/${await gateway.folder(ann, fresh('folder'))}`)
}

describe.each(bodyRoutes)('the body of %s', (name, method, path) => {
  const ask = async (json: unknown) =>
    fixture.gateway.send(ann, await pathOf(path), { json, method })

  test('folder_path is refused with the name of its replacement', async () => {
    const response = await ask({ name: 'x', folder_path: '/a/b', colour: 'red' })
    expect(errorOf(response)).toEqual([422, 'folder_path_removed', 'folder_path'])
    expect(Object(response.body['error']).message).toContain('folder_id')
  })

  test.each(['red', null])(
    'an unknown field is refused, even with the value %p',
    async (colour) => {
      expect(errorOf(await ask({ colour }))).toEqual([422, 'unknown_field', 'colour'])
    },
  )

  test.each(['[]', '"x"', 'null', '7'])('must be an object, not %s', async (text) => {
    expect(outcome(await ask(text))).toBe('422 unprocessable')
  })

  test.each(['{', ' ', '{"name":1}}'])('must be JSON, not %p', async (text) => {
    expect(outcome(await ask(text))).toBe('400 malformed_json')
  })

  test('may be omitted only if it is optional', async () => {
    const response = await fixture.gateway.send(ann, await pathOf(path), { method })
    expect(outcome(response)).toBe(name.startsWith('a restored') ? '200' : '400 malformed_json')
  })
})

describe('a field', () => {
  const uuid = '0198a000-0000-7000-8000-000000000000'
  const faults: [string, object, string][] = [
    ['/v1/folders', { name: 'x', folder_id: 5 }, 'folder_id'],
    ['/v1/folders', { name: 'x', folder_id: 'root' }, 'folder_id'],
    ['/v1/folders', { name: 'x', on_conflict: 'replace' }, 'on_conflict'],
    ['/v1/folders', {}, 'name'],
    ['/v1/files/children', { folder_id: `${uuid}\u0000` }, 'folder_id'],
    ['/v1/files/children', { scope: 'theirs' }, 'scope'],
    ['/v1/files/children', { type: 'link' }, 'type'],
    ['/v1/files/children', { sort: 'name; drop table node' }, 'sort'],
    ['/v1/files/children', { order: 'up' }, 'order'],
    ['/v1/files/children', { limit: 0 }, 'limit'],
    ['/v1/files/children', { limit: 101 }, 'limit'],
    ['/v1/files/children', { limit: 1.5 }, 'limit'],
    ['/v1/files/children', { limit: '20' }, 'limit'],
    ['/v1/files/search', {}, 'query'],
    ['/v1/files/search', { query: ' \u200b ' }, 'query'],
    ['/v1/files/search', { query: 'a\u0000' }, 'query'],
    ['/v1/files/search', { query: '\ud800' }, 'query'],
    ['/v1/files/search', { query: 'x'.repeat(102_400) }, 'query'],
    ['/v1/files/search', { query: 'a', retrieval_status: 'Done' }, 'retrieval_status'],
    ['/v1/files/search', { query: 'a', mime_type: 'text/\u0000' }, 'mime_type'],
    ['FILE/move', {}, 'folder_id'],
    ['FILE/copy', { folder_id: 'x' }, 'folder_id'],
    ['FILE/shares', { role: 'viewer' }, 'principal'],
    ['FILE/shares', { principal: { type: 'user' }, role: 'viewer' }, 'principal.id'],
    ['FILE/shares', { principal: { type: 'user', id: 'bob' }, role: 'viewer' }, 'principal.id'],
    ['FILE/shares', { principal: { type: 'group' }, role: 'viewer' }, 'principal.id'],
    [
      'FILE/shares',
      { principal: { type: 'group', subject: 'a' }, role: 'viewer' },
      'principal.subject',
    ],
    [
      'FILE/shares',
      { principal: { type: 'group', id: 'a\u0000' }, role: 'viewer' },
      'principal.id',
    ],
    ['FILE/shares', { principal: { type: 'everyone', id: 'x' }, role: 'viewer' }, 'principal.id'],
    [
      'FILE/shares',
      { principal: { type: 'user', id: uuid, subject: 'bob' }, role: 'viewer' },
      'principal.id',
    ],
    ['FILE/shares', { principal: { type: 'user', subject: 'bob' }, role: 'owner' }, 'role'],
    ['FILE/shares', { principal: { type: 'user', subject: 'bob' } }, 'role'],
  ]
  test.each(faults)('of %s with %j is refused', async (path, json, param) => {
    const response = await fixture.gateway.send(ann, await pathOf(path), { json })
    const [status, , at] = errorOf(response)
    expect([status, at]).toEqual([422, param])
  })

  test('an optional null field counts as absent', async () => {
    const { gateway } = fixture
    const responses = [
      await gateway.send(ann, '/v1/folders', {
        json: { name: fresh('f'), folder_id: null, on_conflict: null },
      }),
      await gateway.send(ann, '/v1/files/children', {
        json: { folder_id: null, scope: null, limit: null, cursor: null },
      }),
      await gateway.send(ann, '/v1/files/search', {
        json: { q: 'a', query: null, mime_type: null },
      }),
    ]
    expect(responses.map(outcome)).toEqual(['201', '200', '200'])
  })
})

describe('a query', () => {
  const faults: [string, string, string][] = [
    ['/v1/files?folder_path=/a', 'folder_path_removed', 'folder_path'],
    ['/v1/files/children?folder_path=/a', 'folder_path_removed', 'folder_path'],
    ['/v1/files/search?q=a&folder_path=', 'folder_path_removed', 'folder_path'],
    ['/v1/files?colour=red', 'unknown_field', 'colour'],
    ['/v1/files/children?colour=red', 'unknown_field', 'colour'],
    ['/v1/files/search?q=a&colour', 'unknown_field', 'colour'],
    ['/v1/files?limit=0', 'unprocessable', 'limit'],
    ['/v1/files?limit=-1', 'unprocessable', 'limit'],
    ['/v1/files?limit=1e1', 'unprocessable', 'limit'],
    ['/v1/files?after=file-1', 'unprocessable', 'after'],
    ['/v1/files?before=%00', 'unprocessable', 'before'],
    ['/v1/files?scope=MINE', 'unprocessable', 'scope'],
    ['/v1/files?purpose=%00', 'unprocessable', 'purpose'],
    ['/v1/files/children?limit=101', 'unprocessable', 'limit'],
    ['/v1/files/children?folder_id=%27', 'unprocessable', 'folder_id'],
    ['/v1/files/search?q=', 'query_empty', 'query'],
    ['/v1/principals', 'unprocessable', 'q'],
    ['/v1/principals?q=', 'unprocessable', 'q'],
    ['/v1/principals?q=%00', 'unprocessable', 'q'],
  ]
  test.each(faults)('%s is refused', async (path, code, param) => {
    expect(errorOf(await fixture.gateway.send(ann, path))).toEqual([422, code, param])
  })

  test.each([
    ['DELETE', 'FILE'],
    ['DELETE', 'FOLDER'],
  ])('%s %s with a removed or unknown parameter deletes nothing', async (method, path) => {
    const { gateway } = fixture
    const node = await pathOf(path)
    const removed = await gateway.send(ann, `${node}?folder_path=/a&colour=red`, { method })
    expect(errorOf(removed)).toEqual([422, 'folder_path_removed', 'folder_path'])
    const unknown = await gateway.send(ann, `${node}?colour=red`, { method })
    expect(errorOf(unknown)).toEqual([422, 'unknown_field', 'colour'])
    expect((await gateway.send(ann, node)).status).toBe(200)
  })

  test('before and after cannot be combined', async () => {
    const id = Bun.randomUUIDv7()
    const response = await fixture.gateway.send(ann, `/v1/files?after=${id}&before=${id}`)
    expect(errorOf(response)).toEqual([422, 'unprocessable', 'before'])
  })

  test.each(['', 'null'])('the folder %p is the top level', async (folder) => {
    const response = await fixture.gateway.send(ann, `/v1/files/children?folder_id=${folder}`)
    expect(outcome(response)).toBe('200')
  })
})

describe('a cursor', () => {
  const made = (parts: unknown) => Buffer.from(JSON.stringify(parts)).toString('base64url')
  const uuid = '0198a000-0000-7000-8000-000000000000'
  const refused: [string, string, string][] = [
    ['that is none', 'name', 'x'],
    ['of another sort', 'bytes', made(['name', 'asc', 'file', 'a', uuid])],
    ['of another order', 'name', made(['name', 'desc', 'file', 'a', uuid])],
    ['of another kind', 'name', made(['name', 'asc', 'link', 'a', uuid])],
    ['without an id', 'name', made(['name', 'asc', 'file', 'a'])],
    ['with SQL for an id', 'name', made(['name', 'asc', 'file', 'a', "' or true"])],
    ['with a NUL', 'name', made(['name', 'asc', 'file', '\0', uuid])],
    ['with a name for a size', 'bytes', made(['bytes', 'asc', 'file', 'a', uuid])],
    ['with a size beyond all', 'bytes', made(['bytes', 'asc', 'file', '9'.repeat(30), uuid])],
    ['with no time', 'created_at', made(['created_at', 'asc', 'file', 'now', uuid])],
    [
      'with a time that is none',
      'updated_at',
      made(['updated_at', 'asc', 'file', '2026-13-41T25:00:00.000000Z', uuid]),
    ],
    ['of great length', 'name', 'x'.repeat(5_000)],
  ]
  test.each(refused)('%s is refused', async (_, sort, cursor) => {
    const response = await fixture.gateway.send(ann, '/v1/files/children', {
      json: { sort, cursor },
    })
    const [status, , param] = errorOf(response)
    expect([status, param]).toEqual([422, 'cursor'])
  })
})

describe('an id', () => {
  const ids = ['x', '%00', "'", '..%2f', '0198a000-0000-7000-8000-00000000000']
  test.each(ids)('%s is not found', async (id) => {
    const { gateway } = fixture
    const responses = [
      await gateway.send(ann, `/v1/files/${id}`),
      await gateway.send(ann, `/v1/folders/${id}`),
      await gateway.send(ann, `/v1/files/${id}/move`, { json: { colour: 1 } }),
      await gateway.send(ann, `/v1/files/${id}`, { method: 'DELETE' }),
      await gateway.send(ann, `/v1/folders/${id}/restore`, { method: 'POST' }),
      await gateway.send(ann, `/v1/files/${id}/shares`),
      await gateway.send(ann, `/v1/folders/${id}/access`),
    ]
    expect(responses.map(outcome)).toEqual(Array(7).fill('404 not_found'))
  })

  test('of a file is not found as a folder, and vice versa', async () => {
    const { gateway } = fixture
    const file = await gateway.upload(ann, fresh('file'))
    const folder = await gateway.folder(ann, fresh('folder'))
    const responses = [
      await gateway.send(ann, `/v1/folders/${file}`),
      await gateway.send(ann, `/v1/folders/${file}?recursive=true`, { method: 'DELETE' }),
      await gateway.send(ann, `/v1/files/${folder}`),
      await gateway.send(ann, `/v1/files/${folder}?permanent=true`, { method: 'DELETE' }),
      await gateway.send(ann, `/v1/files/${folder}/shares`),
      await gateway.send(ann, `/v1/files/children?folder_id=${file}`),
    ]
    expect(responses.map(outcome)).toEqual(Array(6).fill('404 not_found'))
  })

  test('may be in upper case', async () => {
    const id = await fixture.gateway.upload(ann, fresh('file'))
    const { body } = await fixture.gateway.send(ann, `/v1/files/${id.toUpperCase()}`)
    expect(body['id']).toBe(id)
  })
})
