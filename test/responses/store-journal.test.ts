import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  addEnded,
  ann,
  bob,
  endOf,
  message,
  nothing,
  objectOf,
  opened,
  type StoreFixture,
  segment,
  startStore,
} from './store-fixture.ts'

let fixture: StoreFixture

beforeAll(async () => {
  fixture = await startStore()
})
afterAll(() => fixture.close())

test('a response is found while it runs and after its end', async () => {
  const { store } = fixture
  const response = opened()
  await store.write({ ...nothing, opened: [response] })
  expect(await store.find(ann, response.id)).toEqual({
    object: response.object,
    runnerId: 'runner',
    background: false,
    log: { id: response.id, status: 'in_progress', last: -1 },
    isLogExpired: true,
  })
  const answer = [message('one'), message('two')]
  const object = { ...objectOf(response.id, 'completed', answer), usage: { total_tokens: 3 } }
  await store.write({ ...nothing, logged: [{ id: response.id, segment: segment(0, 4) }] })
  await store.write({ ...nothing, ended: [endOf(object, { segment: segment(5, 6) })] })
  const found = await store.find(ann, response.id)
  expect(found?.object).toEqual(object)
  expect(Object.keys(found?.object ?? {})).toEqual(Object.keys(object))
  expect(found?.log).toEqual({ id: response.id, status: 'completed', last: 6 })
  expect(await store.readLog(response.id, -1, 10_000)).toEqual([segment(0, 4), segment(5, 6)])
})

test('a response that opens and ends in one write is stored in its final state', async () => {
  const { store } = fixture
  const response = await addEnded(store, { output: [message('short')] })
  const found = await store.find(ann, response.id)
  expect(found?.object.status).toBe('completed')
  expect(found?.object.output).toMatchObject([{ content: [{ text: 'short' }] }])
  expect(found?.log.last).toBe(3)
})

test('a write of any number of responses is one statement', async () => {
  const { database } = fixture
  const calls: string[] = []
  const drizzle = new Proxy(database.drizzle, {
    get(target, name, receiver) {
      calls.push(String(name))
      return Reflect.get(target, name, receiver)
    },
  })
  const executePrepared: typeof database.executePrepared = (statement) => {
    calls.push('prepared')
    return database.executePrepared(statement)
  }
  const store = fixture.storeWith({}, { drizzle, executePrepared, kind: database.kind })
  const [whole, long, more] = [opened(), opened(), opened()]
  await store.write({ ...nothing, opened: [long, more] })
  await store.write({
    opened: [whole],
    logged: [long, more].map(({ id }) => ({ id, segment: segment(0, 4) })),
    ended: [whole, long].map(({ id }) =>
      endOf(objectOf(id, 'completed', [message('answer')]), { segment: segment(5, 6) }),
    ),
  })
  expect(calls).toEqual(['prepared', 'prepared'])
  const progress = await store.progress([whole, long, more].map(({ id }) => id))
  expect(progress.map(({ status, last }) => `${status} ${last}`).toSorted()).toEqual([
    'completed 6',
    'completed 6',
    'in_progress 4',
  ])
})

test('one write holds many responses', async () => {
  const { store } = fixture
  const responses = Array.from({ length: 2_100 }, () => opened({ input: [] }))
  await store.write({
    opened: responses,
    logged: responses.map(({ id }) => ({ id, segment: segment(0, 1) })),
    ended: responses
      .filter((_, index) => index % 2 === 0)
      .map(({ id }) => endOf(objectOf(id, 'failed'), { segment: segment(2, 2) })),
  })
  const progress = await store.progress(responses.map(({ id }) => id))
  const last = new Map(progress.map((each) => [each.id, `${each.status} ${each.last}`]))
  expect(responses.map(({ id }) => last.get(id))).toEqual(
    responses.map((_, index) => (index % 2 === 0 ? 'failed 2' : 'in_progress 1')),
  )
})

test('a response deleted while it ran stays deleted, without effect on others', async () => {
  const { store } = fixture
  const deleted = opened()
  const other = opened()
  await store.write({ ...nothing, opened: [deleted, other] })
  expect(await store.remove(ann, deleted.id)).toBe(true)
  await store.write({
    opened: [],
    logged: [deleted, other].map(({ id }) => ({ id, segment: segment(0, 0) })),
    ended: [deleted, other].map(({ id }) =>
      endOf(objectOf(id, 'completed', [message('late')]), { segment: segment(1, 1) }),
    ),
  })
  expect(await store.find(ann, deleted.id)).toBeUndefined()
  expect(await store.readLog(deleted.id, -1, 1_000)).toEqual([])
  expect((await store.find(ann, other.id))?.log).toMatchObject({ status: 'completed', last: 1 })
})

test('the first end of a response is final, and another one is refused', async () => {
  const { store } = fixture
  const [response, other] = [await addEnded(store), opened()]
  await store.write({ opened: [other], logged: [], ended: [] })
  const refused = await store.write({
    opened: [],
    logged: [
      { id: response.id, segment: segment(4, 4) },
      { id: other.id, segment: segment(0, 1) },
    ],
    ended: [endOf(objectOf(response.id, 'failed'), { segment: segment(5, 5) })],
  })
  expect(refused).toEqual(new Set([response.id]))
  expect((await store.find(ann, other.id))?.log).toMatchObject({ last: 1 })
  expect((await store.find(ann, response.id))?.log).toMatchObject({ status: 'completed', last: 3 })
})

test('a repeated write changes nothing', async () => {
  const { store } = fixture
  const response = opened()
  const work = {
    opened: [response],
    logged: [{ id: response.id, segment: segment(0, 2) }],
    ended: [
      endOf(objectOf(response.id, 'completed', [message('once')]), { segment: segment(3, 3) }),
    ],
  }
  await store.write(work)
  const before = await store.find(ann, response.id)
  await store.write(work)
  expect(await store.find(ann, response.id)).toEqual(before)
})

test.each([
  ['NUL', 'a\0b'],
  ['a lone surrogate', 'a\ud800b\udc00'],
  ['an emoji', '🙂'],
  ['what SQL and JSON quote', `'"\\{}$1\n\u2028`],
])('texts may hold %s', async (_, text) => {
  const { store } = fixture
  const item = message(text)
  const response = opened({ input: [item] })
  const object = { ...objectOf(response.id, 'completed', [message(text)]), note: text }
  const frames = `data: ${JSON.stringify(text)}\n\n`
  await store.write({
    opened: [response],
    logged: [],
    ended: [endOf(object, { segment: { first: 0, last: 0, frames } })],
  })
  expect((await store.find(ann, response.id))?.object).toEqual(object)
  expect((await store.readLog(response.id, -1, 10))[0]?.frames).toBe(frames)
  expect((await store.findItems(ann, [item.id])).get(item.id)).toEqual(item)
})

test('an item may exceed the chunk size of statements', async () => {
  const { store } = fixture
  const large = message('x'.repeat(9_000_000))
  const input = [message('before'), large, message('behind')]
  const { id } = await addEnded(store, { input, output: [] })
  const items = (await store.chain(ann, id))?.items
  expect(items?.map((item) => item.id)).toEqual(input.map((item) => item.id))
  expect(JSON.stringify(items?.[1]) === JSON.stringify(large)).toBe(true)
})

test.each(['a\0b', '\ud800', '', 'x'.repeat(9_000), "' or ''='", '{}'])(
  'no id breaks a question or a write: %j',
  async (id) => {
    const { store } = fixture
    expect(await store.find(ann, id)).toBeUndefined()
    expect(await store.chain(ann, id)).toBeUndefined()
    expect(await store.remove(ann, id)).toBe(false)
    expect(await store.readLog(id, -1, 10)).toEqual([])
    expect(await store.progress([id])).toEqual([])
    await addEnded(store, { input: [message('odd', id)] })
    expect((await store.findItems(ann, [id])).get(id)).toEqual(message('odd', id))
    expect((await store.findItems(bob, [id])).size).toBe(0)
  },
)
