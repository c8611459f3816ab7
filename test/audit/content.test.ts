import { afterAll, beforeAll, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** The audit log of files, folders, shares, collections and reindexes, with before and after. */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const ann = { subject: 'ann', groups: ['users'] }
const root = { subject: 'root', groups: ['admins'] }

async function send(
  who: { subject: string; groups: string[] },
  how: string,
  body?: object | string,
): Promise<Record<string, unknown> & { requestId: string }> {
  const [method = '', path = ''] = how.split(' ')
  const response = await gateway.request(path, {
    method,
    headers: {
      authorization: `Bearer ${await gateway.token(who.groups, who.subject)}`,
      'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const answer = asRecord(await response.json())
  if (response.status >= 300) throw new Error(JSON.stringify(answer))
  return { ...answer, requestId: response.headers.get('x-request-id') ?? '' }
}

/** The entries of a resource as `action: changes`, oldest first. */
async function entriesOf(type: string, id: unknown): Promise<[string, unknown][]> {
  const { data } = await send(root, `GET /v1/audit-log?limit=100&resource=${type}:${id}`)
  return Object(data)
    .toReversed()
    .map((entry: { action: string; changes: unknown }) => [entry.action, entry.changes])
}

test('files and folders', async () => {
  const folder = await send(ann, 'POST /v1/folders', { name: 'Plans' })
  const { id } = await send(ann, 'POST /v1/files?name=a.txt', 'one')
  const path = `/v1/files/${id}`
  await send(ann, `PATCH ${path}`, { name: 'b.txt', attributes: { lang: 'en' } })
  await send(ann, `POST ${path}/move`, { folder_id: folder['id'] })
  const { sha256 } = await send(ann, `PUT ${path}/content`, 'two')
  await send(ann, `DELETE ${path}`)
  await send(ann, `POST ${path}/restore`)
  const copy = await send(ann, `POST ${path}/copy`, { folder_id: null, name: 'c.txt' })
  await send(ann, `DELETE ${path}?permanent=true`)
  const inFolder = { name: 'b.txt', folder_id: folder['id'] }
  expect(await entriesOf('file', id)).toEqual([
    ['file.create', { before: null, after: { name: 'a.txt', folder_id: null } }],
    [
      'file.update',
      {
        before: { name: 'a.txt', folder_id: null, attributes: {} },
        after: { name: 'b.txt', folder_id: null, attributes: { lang: 'en' } },
      },
    ],
    ['file.update', { before: { name: 'b.txt', folder_id: null }, after: inFolder }],
    ['file.update_content', { before: null, after: { sha256 } }],
    ['file.delete', { before: { name: 'b.txt' }, after: { in_trash: true } }],
    ['file.restore', { before: null, after: { name: 'b.txt' } }],
    ['file.delete', { before: null, after: { in_trash: false } }],
  ])
  expect(await entriesOf('file', copy['id'])).toEqual([
    ['file.create', { before: null, after: { name: 'c.txt', folder_id: null, copied_from: id } }],
  ])
  await send(ann, `DELETE /v1/folders/${folder['id']}?recursive=true`)
  expect((await entriesOf('folder', folder['id'])).map(([action]) => action)).toEqual([
    'folder.create',
    'folder.delete',
  ])
})

test.each(['files', 'folders', 'collections'])('shares of %s', async (resource) => {
  const made =
    resource === 'files'
      ? await send(ann, 'POST /v1/files?name=shared.txt', 'one')
      : await send(ann, `POST /v1/${resource}`, { name: 'shared' })
  const type = resource.slice(0, -1)
  const path = `/v1/${resource}/${made['id']}/shares`
  const principal = { type: 'everyone', id: '*' }
  const { id } = await send(ann, `POST ${path}`, { principal, role: 'viewer' })
  await send(ann, `PATCH ${path}/${id}`, { role: 'editor' })
  await send(ann, `DELETE ${path}/${id}`)
  const viewer = { principal, role: 'viewer' }
  const editor = { principal, role: 'editor' }
  expect((await entriesOf(type, made['id'])).slice(1)).toEqual([
    [`${type}.share.add`, { before: null, after: viewer }],
    [`${type}.share.update`, { before: viewer, after: editor }],
    [`${type}.share.remove`, { before: editor, after: null }],
  ])
})

test('collections, their access mode and their files', async () => {
  const { id } = await send(ann, 'POST /v1/collections', { name: 'news' })
  const file = await send(ann, 'POST /v1/files?name=news.txt', 'News')
  const path = `/v1/collections/${id}`
  await send(ann, `PATCH ${path}`, { name: 'old-news', access_mode: 'collection' })
  await send(ann, `POST ${path}/files`, { file_id: file['id'] })
  const member = `${path}/files/${file['id']}`
  await send(ann, `PATCH ${member}`, { attributes: { lang: 'en' } })
  await send(ann, `DELETE ${member}`)
  await send(ann, `POST /v1/vector_stores/${id}/files`, { file_id: file['id'] })
  await send(ann, `DELETE /v1/files/${file['id']}/collections/${id}`)
  await send(ann, `DELETE ${path}`)
  const added = { file_ids: [file['id']], access_mode: 'collection' }
  const removed = ['collection.file.remove', { before: { file_id: file['id'] }, after: null }]
  expect(await entriesOf('collection', id)).toEqual([
    [
      'collection.create',
      { before: null, after: { name: 'news', access_mode: 'files', folder_id: null } },
    ],
    [
      'collection.update',
      {
        before: { name: 'news', access_mode: 'files' },
        after: { name: 'old-news', access_mode: 'collection' },
      },
    ],
    ['collection.file.add', { before: null, after: added }],
    [
      'collection.file.update',
      {
        before: { file_id: file['id'], attributes: {} },
        after: { file_id: file['id'], attributes: { lang: 'en' } },
      },
    ],
    removed,
    ['collection.file.add', { before: null, after: added }],
    removed,
    [
      'collection.delete',
      { before: { name: 'old-news', access_mode: 'collection', files: 0 }, after: null },
    ],
  ] as [string, unknown][])
})

test('a reindex and its actions', async () => {
  const collection = await send(ann, 'POST /v1/collections', { name: 'moved' })
  const made = await send(root, 'POST /v1/embeddings/reindex', {
    embedding_model: 'local-hash',
    chunking: { max_tokens: 300, overlap_tokens: 0 },
    collections: [collection['id']],
  })
  const started = {
    embedding_model: 'local-hash',
    collection_ids: [collection['id']],
  }
  await send(root, `POST /v1/embeddings/reindex/${made['id']}/cancel`).catch(() => {})
  const [start, ...actions] = await entriesOf('reindex', made['id'])
  expect(start).toEqual(['reindex.start', { before: null, after: started }])
  for (const [action] of actions) expect(action).toBe('reindex.cancel')
})

test('an entry names the user and the request; what failed has none', async () => {
  const { id, requestId } = await send(ann, 'POST /v1/collections', { name: 'mine' })
  await send(ann, 'POST /v1/collections', { name: 'mine' }).catch(() => {})
  const { data } = await send(root, 'GET /v1/audit-log?action=collection.create&limit=100')
  const entries = Object(data).filter(
    ({ changes }: { changes: { after: { name: string } } }) => changes.after.name === 'mine',
  )
  const { id: userId } = Object((await send(ann, 'GET /v1/me'))['user'] ?? {})
  expect(entries).toHaveLength(1)
  expect(entries[0]).toMatchObject({ request_id: requestId, resource: { type: 'collection', id } })
  if (userId !== undefined) expect(entries[0].actor.id).toBe(userId)
})
