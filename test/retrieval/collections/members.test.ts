import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { outcome, type Person, principalOf } from '#test/support/file-gateway.ts'
import {
  type RetrievalGateway,
  startRetrievalGateway,
  unreadable,
} from '#test/support/retrieval-gateway.ts'

/** Members of collections: rights and ingest. */

let database: TestDatabase
let gateway: RetrievalGateway
beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startRetrievalGateway(database, { retrieval: { collectionFilesMax: 20 } })
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const ann: Person = { subject: 'ann', groups: ['users'] }
const bob: Person = { subject: 'bob', groups: ['users'] }

let name = ''
beforeEach(async () => {
  name = `members-${crypto.randomUUID().slice(0, 8)}`
  await gateway.send(ann, '/v1/collections', { json: { name } })
})

function add(who: Person, json: object, to = name) {
  return gateway.send(who, `/v1/collections/${to}/files`, { json })
}

async function filenames(who: Person, in_ = name): Promise<string[]> {
  const { body } = await gateway.send(who, `/v1/collections/${in_}/files?limit=100`)
  return (body['data'] as { filename: string }[]).map(({ filename }) => filename).toSorted()
}

/** The number of stored passages in all indexes. */
async function chunksOf(fileId: string): Promise<number> {
  const tables = await database.drizzle.execute<{ name: string }>(sql`
    select 'chunk_' || id as name from embedding_index`)
  let count = 0
  for (const table of tables) {
    const rows = await database.drizzle.execute(sql`
      select 1 from ${sql.raw(table.name)} where file_id = ${fileId}::uuid`)
    count += rows.length
  }
  return count
}

test('an added file is in progress, then searchable', async () => {
  const fileId = await gateway.files.upload(ann, 'a.txt', { text: 'the first\nthe second' })
  gateway.ingesting = false
  const added = await add(ann, { file_id: fileId, attributes: { lang: 'en' } })
  expect(added.status).toBe(202)
  expect(added.body).toMatchObject({
    file_id: fileId,
    filename: 'a.txt',
    status: 'in_progress',
    stage: 'waiting',
    attributes: { lang: 'en' },
  })
  gateway.ingesting = true
  await gateway.settled()
  const path = `/v1/collections/${name}/files/${fileId}`
  expect((await gateway.send(ann, path)).body).toMatchObject({ status: 'completed', chunks: 2 })
  const counts = (await gateway.send(ann, `/v1/collections/${name}`)).body['file_counts']
  expect(counts).toEqual({ total: 1, completed: 1, in_progress: 0, failed: 0 })
})

test('an unreadable file fails with an error code', async () => {
  const fileId = await gateway.files.upload(ann, 'odd.txt', { text: unreadable })
  await add(ann, { file_id: fileId })
  await gateway.settled()
  const path = `/v1/collections/${name}/files/${fileId}`
  expect((await gateway.send(ann, path)).body).toMatchObject({
    status: 'failed',
    error: { code: 'unreadable' },
  })
})

test('adding a member again only replaces its attributes', async () => {
  const fileId = await gateway.files.upload(ann, 'again.txt')
  await add(ann, { file_id: fileId, attributes: { a: 1 } })
  await gateway.settled()
  const again = await add(ann, { file_id: fileId })
  expect(again.body).toMatchObject({ status: 'completed', attributes: { a: 1 } })
  expect((await add(ann, { file_id: fileId, attributes: { b: 2 } })).body).toMatchObject({
    attributes: { b: 2 },
  })
  expect(await filenames(ann)).toEqual(['again.txt'])
})

test('attributes of the membership override those of the file', async () => {
  const fileId = await gateway.files.upload(ann, 'c.txt', {
    attributes: { lang: 'de', year: 2024 },
  })
  await add(ann, { file_id: fileId, attributes: { lang: 'en' } })
  const path = `/v1/collections/${name}/files/${fileId}`
  expect((await gateway.send(ann, path)).body).toMatchObject({
    attributes: { lang: 'en', year: 2024 },
  })
  const patch = (attributes: unknown) =>
    gateway.send(ann, path, { method: 'PATCH', json: { attributes } })
  expect((await patch({ lang: null, isFinal: true })).body['attributes']).toEqual({
    lang: 'de',
    year: 2024,
    isFinal: true,
  })
  expect((await patch(null)).body['attributes']).toEqual({ lang: 'de', year: 2024 })
  expect(outcome(await patch({ 'a b': 1 }))).toBe('422 unprocessable')
  expect(outcome(await patch({ a: {} }))).toBe('422 unprocessable')
})

test('adding a file needs read access to it and the role editor on the collection', async () => {
  const [annsFile, bobsFile] = [
    await gateway.files.upload(ann, 'mine.txt'),
    await gateway.files.upload(bob, 'theirs.txt'),
  ]
  expect(outcome(await add(ann, { file_id: bobsFile }))).toBe('404 not_found')
  expect(outcome(await add(ann, { file_id: crypto.randomUUID() }))).toBe('404 not_found')
  expect(outcome(await add(ann, { file_id: 'x' }))).toBe('404 not_found')
  expect(outcome(await add(bob, { file_id: bobsFile }))).toBe('404 not_found')
  await gateway.files.share(ann, `/v1/files/${annsFile}`, { type: 'everyone' }, 'viewer')
  const everyone = { principal: { type: 'everyone' }, role: 'viewer' }
  await gateway.send(ann, `/v1/collections/${name}/shares`, { json: everyone })
  expect(outcome(await add(bob, { file_id: annsFile }))).toBe('403 permission_denied')
  await gateway.send(ann, `/v1/collections/${name}/shares`, {
    json: { ...everyone, role: 'editor' },
  })
  expect(outcome(await add(bob, { file_id: annsFile }))).toBe('202')
  expect(outcome(await add(bob, { file_id: bobsFile }))).toBe('202')
  expect(await filenames(ann)).toEqual(['mine.txt'])
  expect(await filenames(bob)).toEqual(['mine.txt', 'theirs.txt'])
  const path = `/v1/collections/${name}/files/${bobsFile}`
  expect(outcome(await gateway.send(ann, path, { method: 'DELETE' }))).toBe('404 not_found')
})

test('an open collection accepts only files that the caller may share', async () => {
  const open = `${name}-open`
  await gateway.send(bob, '/v1/collections', { json: { name: open, access_mode: 'collection' } })
  const fileId = await gateway.files.upload(ann, 'secret.txt')
  const share = (role: string) =>
    gateway.files.share(ann, `/v1/files/${fileId}`, { type: 'everyone' }, role)
  await share('editor')
  expect(outcome(await add(bob, { file_id: fileId }, open))).toBe('403 permission_denied')
  await share('manager')
  expect(outcome(await add(bob, { file_id: fileId }, open))).toBe('202')
})

test('opening a collection needs the right to share all of its files', async () => {
  const fileId = await gateway.files.upload(bob, 'bobs.txt')
  await gateway.files.share(bob, `/v1/files/${fileId}`, { type: 'everyone' }, 'viewer')
  expect(outcome(await add(ann, { file_id: fileId }))).toBe('202')
  const change = { method: 'PATCH', json: { access_mode: 'collection' } }
  const path = `/v1/collections/${name}`
  expect(outcome(await gateway.send(ann, path, change))).toBe('403 permission_denied')
  await gateway.send(ann, `${path}/files/${fileId}`, { method: 'DELETE' })
  expect((await gateway.send(ann, path, change)).body).toMatchObject({ access_mode: 'collection' })
})

test('a file in no collection has no passages', async () => {
  const other = `${name}-b`
  await gateway.send(ann, '/v1/collections', { json: { name: other } })
  const fileId = await gateway.files.upload(ann, 'shared.txt', { text: 'one\ntwo\nthree' })
  await add(ann, { file_id: fileId })
  await add(ann, { file_id: fileId }, other)
  await gateway.settled()
  expect(await chunksOf(fileId)).toBe(3)
  const path = `/v1/collections/${name}/files/${fileId}`
  expect((await gateway.send(ann, path, { method: 'DELETE' })).body).toMatchObject({
    deleted: true,
  })
  expect(outcome(await gateway.send(ann, path))).toBe('404 not_found')
  expect(await chunksOf(fileId)).toBe(3)
  await gateway.send(ann, `/v1/collections/${other}`, { method: 'DELETE' })
  expect(await chunksOf(fileId)).toBe(0)
})

test('an ingest after the removal of its file stores nothing', async () => {
  const fileId = await gateway.files.upload(ann, 'late.txt')
  gateway.ingesting = false
  await add(ann, { file_id: fileId })
  await gateway.send(ann, `/v1/collections/${name}/files/${fileId}`, { method: 'DELETE' })
  gateway.ingesting = true
  await gateway.settled()
  expect(await chunksOf(fileId)).toBe(0)
})

test('only changed content is ingested again', async () => {
  const fileId = await gateway.files.upload(ann, 'v.txt', { text: 'one' })
  await add(ann, { file_id: fileId })
  await gateway.settled()
  const putAgain = (text: string) =>
    gateway.files.upload(ann, 'v.txt', { text, onConflict: 'replace' })
  gateway.ingesting = false
  expect(await putAgain('one')).toBe(fileId)
  const path = `/v1/collections/${name}/files/${fileId}`
  expect((await gateway.send(ann, path)).body).toMatchObject({ status: 'completed' })
  await putAgain('one\ntwo')
  expect((await gateway.send(ann, path)).body).toMatchObject({ status: 'in_progress' })
  gateway.ingesting = true
  await gateway.settled()
  expect((await gateway.send(ann, path)).body).toMatchObject({ status: 'completed', chunks: 2 })
})

test('an upload adds its file to collections, or fails as a whole', async () => {
  const fileId = await gateway.files.upload(ann, 'up.txt', { collections: [name] })
  expect(await filenames(ann)).toEqual(['up.txt'])
  const refused = gateway.files.upload(ann, 'no.txt', { collections: [name, 'nowhere'] })
  await expect(refused).rejects.toMatchObject({
    wireCode: 'collection_not_found',
    param: 'collections[1]',
  })
  expect(await filenames(ann)).toEqual(['up.txt'])
  await eventually('it is found', async () => (await chunksOf(fileId)) > 0)
})

test('the number of files of a collection is limited', async () => {
  const folder = await gateway.files.folder(ann, name)
  const files = []
  for (let at = 0; at < 21; at++) {
    const fileId = await gateway.files.upload(ann, `${at}.txt`, { folderId: folder, text: 'same' })
    files.push({ fileId, attributes: null })
  }
  const adding = gateway.collections.members.add(principalOf(ann), name, files, null)
  await expect(adding).rejects.toMatchObject({ wireCode: 'collection_full' })
  expect(await filenames(ann)).toEqual([])
})

test('a file that moves between collections concurrently is found', async () => {
  const other = `${name}-c`
  await gateway.send(ann, '/v1/collections', { json: { name: other } })
  const fileId = await gateway.files.upload(ann, 'moves.txt', { text: 'one\ntwo' })
  let [from, to] = [name, other]
  await add(ann, { file_id: fileId }, from)
  for (let round = 0; round < 10; round++) {
    const [added, removed] = await Promise.all([
      add(ann, { file_id: fileId }, to),
      gateway.send(ann, `/v1/collections/${from}/files/${fileId}`, { method: 'DELETE' }),
    ])
    expect([outcome(added), outcome(removed)]).toEqual(['202', '200'])
    await gateway.settled()
    expect(await chunksOf(fileId)).toBe(2)
    const path = `/v1/collections/${to}/files/${fileId}`
    expect((await gateway.send(ann, path)).body).toMatchObject({ status: 'completed' })
    ;[from, to] = [to, from]
  }
})
