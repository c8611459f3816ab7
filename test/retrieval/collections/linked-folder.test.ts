import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { outcome, type Person, principalOf } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'
import { storeNodes } from '#test/support/stored-files.ts'

/** Collections linked to a folder. */

let database: TestDatabase
let gateway: RetrievalGateway
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database)
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const ann: Person = { subject: 'ann', groups: ['users'] }
const bob: Person = { subject: 'bob', groups: ['users'] }

let folder = ''
let name = ''
beforeEach(async () => {
  folder = await gateway.files.folder(ann, `folder ${crypto.randomUUID()}`)
  name = `follows-${crypto.randomUUID().slice(0, 8)}`
})

function follow(json: object = {}) {
  return gateway.send(ann, '/v1/collections', { json: { name, folder_id: folder, ...json } })
}

async function filenames(): Promise<string[]> {
  const { body } = await gateway.send(ann, `/v1/collections/${name}/files?limit=100`)
  return (body['data'] as { filename: string }[]).map(({ filename }) => filename).toSorted()
}

function move(kind: 'files' | 'folders', id: string, to: string | null) {
  return gateway.files.send(ann, `/v1/${kind}/${id}`, { method: 'PATCH', json: { folder_id: to } })
}

test('files of the folder and its subfolders are members', async () => {
  const inner = await gateway.files.folder(ann, 'inner', folder)
  await gateway.files.upload(ann, 'a.txt', { folderId: folder })
  await gateway.files.upload(ann, 'b.txt', { folderId: inner })
  await gateway.files.upload(ann, `c ${name}.txt`)
  expect((await follow()).body).toMatchObject({ folder_id: folder })
  expect(await filenames()).toEqual(['a.txt', 'b.txt'])
  await gateway.settled()
  const signal = new AbortController().signal
  const { results } = await gateway.search(createBackgroundContext(signal, principalOf(ann)), {
    collections: [name],
    queries: ['b.txt'],
    filters: [],
    topK: 1,
    scoreMin: null,
    mode: 'hybrid',
    rerank: null,
  })
  expect(results.map(({ filename }) => filename)).toEqual(['b.txt'])
})

test('memberships change when files move', async () => {
  await follow()
  const inner = await gateway.files.folder(ann, 'inner', folder)
  const otherFolder = await gateway.files.folder(ann, `elsewhere ${name}`)
  const fileId = await gateway.files.upload(ann, 'new.txt', { folderId: inner })
  expect(await filenames()).toEqual(['new.txt'])
  await move('files', fileId, otherFolder)
  expect(await filenames()).toEqual([])
  await move('folders', otherFolder, inner)
  expect(await filenames()).toEqual(['new.txt'])
  await move('folders', inner, null)
  expect(await filenames()).toEqual([])
})

test('a file in the trash is hidden until it is restored', async () => {
  await follow()
  const fileId = await gateway.files.upload(ann, 'kept.txt', { folderId: folder })
  await gateway.files.send(ann, `/v1/files/${fileId}`, { method: 'DELETE' })
  expect(await filenames()).toEqual([])
  await gateway.files.send(ann, `/v1/files/${fileId}/restore`, { json: {} })
  expect(await filenames()).toEqual(['kept.txt'])
})

test('a member by folder cannot be removed, a directly added one stays after a move', async () => {
  await follow()
  const fileId = await gateway.files.upload(ann, 'both.txt', { folderId: folder })
  const path = `/v1/collections/${name}/files`
  const removed = await gateway.send(ann, `${path}/${fileId}`, { method: 'DELETE' })
  expect(outcome(removed)).toBe('409 file_followed')
  await gateway.send(ann, path, { json: { file_id: fileId } })
  await move('files', fileId, null)
  expect(await filenames()).toEqual(['both.txt'])
})

test('changing the folder replaces the members', async () => {
  const other = await gateway.files.folder(ann, `other ${name}`)
  await gateway.files.upload(ann, 'one.txt', { folderId: folder })
  await gateway.files.upload(ann, 'two.txt', { folderId: other })
  await follow()
  const change = (folder_id: string | null) =>
    gateway.send(ann, `/v1/collections/${name}`, { method: 'PATCH', json: { folder_id } })
  await change(other)
  expect(await filenames()).toEqual(['two.txt'])
  await change(null)
  expect(await filenames()).toEqual([])
})

test('an open collection needs the right to share its folder', async () => {
  const bobs = await gateway.files.folder(bob, `bobs ${name}`)
  await gateway.files.share(bob, `/v1/folders/${bobs}`, { type: 'everyone' }, 'editor')
  const open = { folder_id: bobs, access_mode: 'collection' }
  expect(outcome(await follow(open))).toBe('403 permission_denied')
  await gateway.files.share(bob, `/v1/folders/${bobs}`, { type: 'everyone' }, 'manager')
  expect(outcome(await follow(open))).toBe('201')
})

test('all files of a large folder become members', async () => {
  const files = Array.from({ length: 450 }, () => ({
    id: Bun.randomUUIDv7(),
    ownerId: userIdOf('ann'),
    parentId: folder,
  }))
  await storeNodes(database, files)
  gateway.ingesting = false
  await follow()
  await eventually('all of them are members', async () => {
    const { counts } = await gateway.collections.find(principalOf(ann), name)
    return counts.total === files.length
  })
})
