import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { outcome, type Person } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'

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
const bob: Person = { subject: 'bob', groups: ['users', 'legal'] }
const eve: Person = { subject: 'eve', groups: ['users'] }

let made = 0
async function collection(who: Person, fields: object = {}): Promise<string> {
  made += 1
  const name = `collection-${made}`
  const answer = await gateway.send(who, '/v1/collections', { json: { name, ...fields } })
  expect(outcome(answer)).toBe('201')
  return name
}

test('a collection has an index, chunking and counts', async () => {
  const json = {
    name: 'handbook',
    description: 'How we work',
    chunking: { max_tokens: 400, overlap_tokens: 40 },
  }
  const created = await gateway.send(ann, '/v1/collections', { json })
  expect(created.status).toBe(201)
  expect(created.body).toMatchObject({
    object: 'collection',
    name: 'handbook',
    description: 'How we work',
    access_mode: 'files',
    my_role: 'owner',
    owner: { name: 'ann' },
    folder_id: null,
    index: { embedding_model: 'local-hash', dims: 384, state: 'active' },
    target_index: null,
    chunking: { max_tokens: 400, overlap_tokens: 40 },
    file_counts: { total: 0, completed: 0, in_progress: 0, failed: 0 },
  })
  const found = await gateway.send(ann, `/v1/collections/handbook`)
  expect(found.body).toEqual(created.body)
  expect((await gateway.send(ann, `/v1/collections/${created.body['id']}`)).body).toEqual(
    found.body,
  )
})

test('collections of the same model and chunking share an index', async () => {
  const indexOf = async (fields: object) => {
    const name = await collection(ann, fields)
    return (await gateway.send(ann, `/v1/collections/${name}`)).body['index']
  }
  expect(await indexOf({})).toEqual(await indexOf({}))
  const chunking = { max_tokens: 300, overlap_tokens: 0 }
  expect(await indexOf({ chunking })).not.toEqual(await indexOf({}))
})

test.each<[string, object, string]>([
  ['a capital', { name: 'Big' }, '422 invalid_name'],
  ['a slash', { name: 'a/b' }, '422 invalid_name'],
  ['a long name', { name: 'a'.repeat(64) }, '422 invalid_name'],
  ['a name like an id', { name: crypto.randomUUID() }, '422 invalid_name'],
  ['no name', {}, '422 unprocessable'],
  ['an unknown field', { name: 'x', colour: 'red' }, '422 unknown_field'],
  ['another access', { name: 'x', access_mode: 'all' }, '422 unprocessable'],
  [
    'tiny passages',
    { name: 'x', chunking: { max_tokens: 5, overlap_tokens: 0 } },
    '422 unprocessable',
  ],
  [
    'passages that are mostly overlap',
    { name: 'x', chunking: { max_tokens: 200, overlap_tokens: 101 } },
    '422 unprocessable',
  ],
  ['an unknown model', { name: 'x', embedding_model: 'nope' }, '422 model_not_found'],
  ['a folder that is none', { name: 'x', folder_id: 'here' }, '422 unprocessable'],
  ['a hidden folder', { name: 'x', folder_id: crypto.randomUUID() }, '404 not_found'],
])('a collection with %s is not made', async (_, json, refusal) => {
  expect(outcome(await gateway.send(ann, '/v1/collections', { json }))).toBe(refusal)
})

test('only those with a share see a collection', async () => {
  const name = await collection(ann)
  const path = `/v1/collections/${name}`
  expect(outcome(await gateway.send(bob, path))).toBe('404 not_found')
  const group = { principal: { type: 'group', id: 'legal' }, role: 'viewer' }
  expect(outcome(await gateway.send(bob, `${path}/shares`, { json: group }))).toBe('404 not_found')
  expect(outcome(await gateway.send(ann, `${path}/shares`, { json: group }))).toBe('201')
  expect((await gateway.send(bob, path)).body).toMatchObject({ name, my_role: 'viewer' })
  const listed = await gateway.send(bob, '/v1/collections')
  expect(JSON.stringify(listed.body)).toContain(`"${name}"`)
  expect(JSON.stringify((await gateway.send(eve, '/v1/collections')).body)).not.toContain(name)
})

test('changes need manager, deletion needs owner', async () => {
  const name = await collection(ann)
  const path = `/v1/collections/${name}`
  const share = (role: string) =>
    gateway.send(ann, `${path}/shares`, {
      json: { principal: { type: 'group', id: 'legal' }, role },
    })
  const change = { method: 'PATCH', json: { description: 'new' } }
  await share('editor')
  expect(outcome(await gateway.send(bob, path, change))).toBe('403 permission_denied')
  await share('manager')
  expect((await gateway.send(bob, path, change)).body).toMatchObject({ description: 'new' })
  expect(outcome(await gateway.send(bob, path, { method: 'DELETE' }))).toBe('403 permission_denied')
  expect(outcome(await gateway.send(eve, path, { method: 'DELETE' }))).toBe('404 not_found')
  expect((await gateway.send(ann, path, { method: 'DELETE' })).body).toMatchObject({
    name,
    deleted: true,
  })
  expect(outcome(await gateway.send(ann, path))).toBe('404 not_found')
})

test('deleting a collection that agents search needs force; renaming it does not', async () => {
  const name = await collection(ann)
  const path = `/v1/collections/${name}`
  gateway.usedCollections.add(String((await gateway.send(ann, path)).body['id']))
  expect(outcome(await gateway.send(ann, path, { method: 'DELETE' }))).toBe('409 collection_in_use')
  const rename = { method: 'PATCH', json: { name: `${name}-b` } }
  expect(outcome(await gateway.send(ann, path, rename))).toBe('200')
  const forced = await gateway.send(ann, `${path}-b?force=true`, { method: 'DELETE' })
  expect(outcome(forced)).toBe('200')
})

test('a list is paged with cursors', async () => {
  const dan: Person = { subject: 'dan', groups: ['users'] }
  const names = [await collection(dan), await collection(dan), await collection(dan)]
  const first = await gateway.send(dan, '/v1/collections?limit=2')
  expect(first.body).toMatchObject({ has_more: true })
  const rest = await gateway.send(dan, `/v1/collections?after=${first.body['last_id']}`)
  expect(rest.body).toMatchObject({ has_more: false, data: [{ name: names[0] }] })
  const before = await gateway.send(dan, `/v1/collections?before=${rest.body['first_id']}&limit=1`)
  expect(before.body).toMatchObject({ has_more: true, data: [{ name: names[1] }] })
})
