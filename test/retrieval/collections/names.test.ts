import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { outcome, type Person } from '#test/support/file-gateway.ts'
import { type RetrievalGateway, startRetrievalGateway } from '#test/support/retrieval-gateway.ts'

/** Names of collections are unique per owner, and never reveal a collection that is not shared. */

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

const person = (subject: string): Person => ({ subject, groups: ['users'] })
const ann = person('ann')
const bob = person('bob')
const eve = person('eve')

async function create(who: Person, name: string): Promise<string> {
  const answer = await gateway.send(who, '/v1/collections', { json: { name } })
  expect(outcome(answer)).toBe('201')
  return String(answer.body['id'])
}

async function share(who: Person, id: string, role = 'viewer'): Promise<void> {
  const json = { principal: { type: 'everyone' }, role }
  expect(outcome(await gateway.send(who, `/v1/collections/${id}/shares`, { json }))).toBe('201')
}

/** The id of the collection that a reference finds, or the error, in every place that takes one. */
async function lookUp(who: Person, reference: string): Promise<string[]> {
  const path = `/v1/collections/${encodeURIComponent(reference)}`
  const store = `/v1/vector_stores/${encodeURIComponent(reference)}`
  const search = { json: { query: 'x' } }
  const answers = [
    await gateway.send(who, path),
    await gateway.send(who, `${path}/files`),
    await gateway.send(who, `${path}/shares`),
    await gateway.send(who, `${path}/search`, search),
    await gateway.send(who, store),
    await gateway.send(who, `${store}/search`, search),
  ]
  const found = answers.map(({ status, body }) =>
    status === 200 ? String(body['id'] ?? 'found') : outcome({ status, body } as never),
  )
  return [...new Set(found.map((text) => text.replace(/^(400|422)/, 'refused')))]
}

test('a stranger may use the name of a hidden collection, in creation and as a vector store', async () => {
  await create(ann, 'plans')
  const own = await create(eve, 'plans')
  expect(await lookUp(eve, 'plans')).toEqual([own, 'found'])
  const stored = await gateway.send(bob, '/v1/vector_stores', { json: { name: 'plans' } })
  expect(stored.body).toMatchObject({ name: 'plans', collection: 'plans' })
})

test("one's own name is a conflict, also with concurrent requests", async () => {
  const json = { name: 'contested' }
  const answers = await Promise.all(
    [ann, ann, ann, bob].map((who) => gateway.send(who, '/v1/collections', { json })),
  )
  expect(answers.map(outcome).toSorted()).toEqual([
    '201',
    '201',
    '409 name_conflict',
    '409 name_conflict',
  ])
})

describe('a name', () => {
  test("means one's own collection before one that is shared", async () => {
    const anns = await create(ann, 'manual')
    await share(ann, anns)
    const bobs = await create(bob, 'manual')
    expect(await lookUp(bob, 'manual')).toEqual([bobs, 'found'])
    expect(await lookUp(eve, 'manual')).toEqual([anns, 'found'])
  })

  test('means the only shared one, whatever strangers hide', async () => {
    await create(ann, 'guide')
    const bobs = await create(bob, 'guide')
    await share(bob, bobs)
    expect(await lookUp(eve, 'guide')).toEqual([bobs, 'found'])
  })

  test('of several shared ones is refused with the ids that the caller may see', async () => {
    const anns = await create(ann, 'faq')
    const bobs = await create(bob, 'faq')
    const hidden = await create(person('dan'), 'faq')
    await share(ann, anns)
    await share(bob, bobs)
    expect(await lookUp(eve, 'faq')).toEqual(['refused ambiguous_name'])
    const { body } = await gateway.send(eve, '/v1/collections/faq')
    const text = String(Object(body['error']).message)
    expect(text).toContain(`${anns} (ann/faq)`)
    expect(text).toContain(`${bobs} (bob/faq)`)
    expect(text).not.toContain(hidden)
    expect(text).not.toContain('dan')
  })

  test('that only hidden collections have is unknown', async () => {
    await create(ann, 'hidden')
    await create(bob, 'hidden')
    expect(await lookUp(eve, 'hidden')).toEqual(['404 not_found'])
  })
})

describe('an owner and a name', () => {
  test('find a collection by the subject or the id of the owner', async () => {
    const anns = await create(ann, 'notes')
    await create(eve, 'notes')
    await share(ann, anns)
    for (const owner of ['ann', userIdOf('ann')]) {
      expect(await lookUp(eve, `${owner}/notes`)).toEqual([anns, 'found'])
    }
  })

  test('find it for subjects that look like ids or paths', async () => {
    for (const subject of [crypto.randomUUID(), 'https://idp.example/users/7', 'a b%2F?#']) {
      const id = await create(person(subject), 'notes')
      await share(person(subject), id)
      expect(await lookUp(eve, `${subject}/notes`)).toEqual([id, 'found'])
    }
  })

  test('of a hidden collection are unknown', async () => {
    await create(ann, 'diary')
    for (const reference of ['ann/diary', `${userIdOf('ann')}/diary`, 'nobody/diary', '/diary']) {
      expect(await lookUp(eve, reference)).toEqual(['404 not_found'])
    }
  })
})

test('only the owner renames a collection, since a conflict would reveal their other names', async () => {
  await create(ann, 'secret')
  const id = await create(ann, 'public')
  await share(ann, id, 'manager')
  const rename = (who: Person, name: string) =>
    gateway.send(who, `/v1/collections/${id}`, { method: 'PATCH', json: { name } })
  expect(outcome(await rename(bob, 'secret'))).toBe('403 permission_denied')
  expect(outcome(await rename(bob, 'other'))).toBe('403 permission_denied')
  expect(outcome(await rename(bob, 'public'))).toBe('200')
  expect(outcome(await rename(ann, 'secret'))).toBe('409 name_conflict')
  expect(outcome(await rename(ann, 'other'))).toBe('200')
})

test('an upload names collections in the same way, and the file has their names and ids', async () => {
  const own = await create(eve, 'inbox')
  await share(ann, await create(ann, 'inbox'))
  const upload = (collections: string[]) =>
    gateway.files.upload(eve, `${crypto.randomUUID()}.txt`, { collections })
  const { body } = await gateway.files.send(eve, `/v1/files/${await upload(['inbox'])}`)
  expect(body['retrieval']).toMatchObject({ collections: ['inbox'], collection_ids: [own] })
  for (const who of [ann, bob]) await share(who, await create(who, 'letters'), 'editor')
  const param = 'collections[1]'
  const ambiguous = { wireCode: 'ambiguous_name', param }
  await expect(upload(['inbox', 'letters'])).rejects.toMatchObject(ambiguous)
  const unknown = { wireCode: 'collection_not_found', param }
  await expect(upload(['inbox', 'nothing'])).rejects.toMatchObject(unknown)
})
