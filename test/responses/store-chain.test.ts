import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { PageRequest } from '#responses/response.ts'
import {
  addEnded,
  ann,
  bob,
  message,
  nothing,
  opened,
  type StoreFixture,
  startStore,
  textsOf,
} from './store-fixture.ts'

let fixture: StoreFixture

beforeAll(async () => {
  fixture = await startStore()
})
afterAll(() => fixture.close())

/** Three turns, `q1 a1 q2 a2 q3 a3`; the ids of the responses. */
async function addChain(length = 3, ownerId = ann): Promise<string[]> {
  const ids: string[] = []
  for (let turn = 1; turn <= length; turn++) {
    const { id } = await addEnded(fixture.store, {
      ownerId,
      previousResponseId: ids.at(-1) ?? null,
      input: [message(`q${turn}`)],
      output: [message(`a${turn}`)],
    })
    ids.push(id)
  }
  return ids
}

const dayMs = 86_400_000

describe('a chain', () => {
  test('holds input and output of all responses, oldest first', async () => {
    const [first = '', second = '', third = ''] = await addChain()
    const all = ['q1', 'a1', 'q2', 'a2', 'q3', 'a3']
    const { store } = fixture
    expect(textsOf((await store.chain(ann, third))?.items)).toEqual(all)
    expect(textsOf((await store.chain(ann, second))?.items)).toEqual(all.slice(0, 4))
    expect(textsOf((await store.chain(ann, first))?.items)).toEqual(all.slice(0, 2))
  })

  test('has the status of its newest response', async () => {
    const { store } = fixture
    const running = opened({ input: [message('q')] })
    await store.write({ ...nothing, opened: [running] })
    expect(await store.chain(ann, running.id)).toEqual({
      status: 'in_progress',
      items: running.input,
    })
  })

  test('does not exist without one of its responses', async () => {
    const { store } = fixture
    const [first = '', second = '', third = ''] = await addChain()
    expect(await store.remove(ann, second)).toBe(true)
    expect(await store.chain(ann, third)).toBeUndefined()
    expect(await store.chain(ann, second)).toBeUndefined()
    expect(textsOf((await store.chain(ann, first))?.items)).toEqual(['q1', 'a1'])
  })

  test('never continues a response of another owner', async () => {
    const { store } = fixture
    const [, , bobs = ''] = await addChain(3, bob)
    expect(await store.chain(ann, bobs)).toBeUndefined()
    const mine = await addEnded(store, { previousResponseId: bobs })
    expect(await store.chain(ann, mine.id)).toBeUndefined()
  })

  test('is retained as long as it is continued', async () => {
    const { store } = fixture
    const [first = '', second = '', third = ''] = await addChain()
    fixture.pass(20 * dayMs)
    expect(await store.chain(ann, second)).toBeDefined()
    fixture.pass(20 * dayMs)
    expect(await store.find(ann, third)).toBeUndefined()
    expect(await store.chain(ann, third)).toBeUndefined()
    expect(await store.chain(ann, second)).toBeDefined()
    expect(await store.find(ann, first)).toBeDefined()
    fixture.pass(31 * dayMs)
    expect(await store.chain(ann, second)).toBeUndefined()
  })

  test('has a maximum length', async () => {
    const short = fixture.storeWith({ chainMax: 3 })
    const ids = await addChain(3)
    expect(textsOf((await short.chain(ann, ids[1] ?? ''))?.items)).toHaveLength(4)
    await expect(short.chain(ann, ids[2] ?? '')).rejects.toMatchObject({
      kind: 'invalid_request',
      param: 'previous_response_id',
    })
  })

  test('has a maximum size', async () => {
    const small = fixture.storeWith({ storedCharsMax: 2_000 })
    const first = await addEnded(fixture.store, { input: [message('x'.repeat(1_500))] })
    const second = await addEnded(fixture.store, {
      input: [message('y'.repeat(1_500))],
      previousResponseId: first.id,
    })
    expect(await small.chain(ann, first.id)).toBeDefined()
    await expect(small.chain(ann, second.id)).rejects.toMatchObject({ kind: 'request_too_large' })
  })
})

describe('items by their ids', () => {
  test('are found for their owner, the newest of the same id', async () => {
    const { store } = fixture
    await addEnded(store, {
      input: [message('old', 'msg_same')],
      output: [message('out', 'msg_o')],
    })
    fixture.pass(1_000)
    await addEnded(store, { input: [message('new', 'msg_same')] })
    fixture.pass(1_000)
    await addEnded(store, { ownerId: bob, input: [message('other', 'msg_same')] })
    const found = await store.findItems(ann, ['msg_same', 'msg_o', 'msg_none', 'msg_same'])
    expect([...found.keys()].toSorted()).toEqual(['msg_o', 'msg_same'])
    expect(textsOf([...found.values()]).toSorted()).toEqual(['new', 'out'])
    expect(textsOf([...(await store.findItems(bob, ['msg_same'])).values()])).toEqual(['other'])
    expect((await store.findItems(ann, [])).size).toBe(0)
  })

  test('are deleted with their response', async () => {
    const { store } = fixture
    const response = await addEnded(store, { input: [message('one', 'msg_gone')] })
    const later = await addEnded(store, { input: [message('two', 'msg_late')] })
    await store.remove(ann, response.id)
    expect([...(await store.findItems(ann, ['msg_gone', 'msg_late'])).keys()]).toEqual(['msg_late'])
    fixture.pass(31 * dayMs)
    expect((await store.findItems(ann, ['msg_late'])).size).toBe(0)
    expect(await store.find(ann, later.id)).toBeUndefined()
  })

  test('are found by the thousand, up to a maximum size', async () => {
    const input = Array.from({ length: 3_000 }, (_, at) => message(String(at), `msg_many_${at}`))
    await addEnded(fixture.store, { input })
    const ids = input.map(({ id }) => id)
    expect((await fixture.store.findItems(ann, ids)).size).toBe(3_000)
    const small = fixture.storeWith({ storedCharsMax: 10_000 })
    await expect(small.findItems(ann, ids)).rejects.toMatchObject({ kind: 'request_too_large' })
  })
})

describe('the input of a response', () => {
  const inOrder = ['q1', 'a1', 'q2', 'a2', 'q3']
  const page = (given: Partial<PageRequest>): PageRequest => ({
    after: null,
    limit: 20,
    order: 'asc',
    ...given,
  })

  test('includes that of previous responses', async () => {
    const { store } = fixture
    const [, , third = ''] = await addChain()
    const ascending = await store.listInputItems(ann, third, page({}))
    expect(textsOf(ascending?.data)).toEqual(inOrder)
    expect(ascending?.hasMore).toBe(false)
    const descending = await store.listInputItems(ann, third, page({ order: 'desc' }))
    expect(textsOf(descending?.data)).toEqual(inOrder.toReversed())
  })

  test.each(['asc', 'desc'] as const)('is paginated, %s', async (order) => {
    const { store } = fixture
    const [, , third = ''] = await addChain()
    const expected = order === 'asc' ? inOrder : inOrder.toReversed()
    for (const limit of [1, 2, 4, 5]) {
      const texts: string[] = []
      let after: string | null = null
      for (let hasMore = true; hasMore; ) {
        const listed = await store.listInputItems(ann, third, { after, limit, order })
        if (listed === undefined) throw new Error('no page')
        texts.push(...textsOf(listed.data))
        after = listed.data.at(-1)?.id ?? null
        hasMore = listed.hasMore
      }
      expect(texts).toEqual(expected)
    }
  })

  test.each(['asc', 'desc'] as const)('has an end, also with one id twice, %s', async (order) => {
    const { store } = fixture
    const same = () => message('same', 'msg_in_both')
    const first = await addEnded(store, { input: [same(), message('a'), message('b')], output: [] })
    const { id } = await addEnded(store, {
      previousResponseId: first.id,
      input: [message('c'), same(), message('d')],
      output: [],
    })
    const texts: string[] = []
    let after: string | null = null
    for (let pages = 0; pages < 7; pages++) {
      const listed = await store.listInputItems(ann, id, { after, limit: 1, order })
      texts.push(...textsOf(listed?.data))
      if (!listed?.hasMore) break
      after = listed.data.at(-1)?.id ?? null
    }
    // A cursor is the last of its places, so no page comes twice.
    expect(texts).toEqual(order === 'asc' ? ['same', 'd'] : ['d', 'same'])
  })

  test('ends a page early at the size limit', async () => {
    const input = Array.from({ length: 4 }, (_, at) => message(`${at}`.repeat(1_000)))
    const { id } = await addEnded(fixture.store, { input })
    const small = fixture.storeWith({ storedCharsMax: 1_500 })
    const listed = await small.listInputItems(ann, id, page({}))
    expect(listed).toEqual({ data: input.slice(0, 2), hasMore: true })
  })

  test('is undefined without a response, and an error for an unknown cursor', async () => {
    const { store } = fixture
    const { id } = await addEnded(store, { output: [message('out', 'msg_own_output')] })
    expect(await store.listInputItems(bob, id, page({}))).toBeUndefined()
    expect(await store.listInputItems(ann, 'resp_none', page({}))).toBeUndefined()
    expect(await store.listInputItems(ann, 'resp_none', page({ after: 'x' }))).toBeUndefined()
    const behind = store.listInputItems(ann, id, page({ after: 'msg_own_output' }))
    await expect(behind).rejects.toMatchObject({ kind: 'invalid_request', param: 'after' })
    const empty = await addEnded(store, { input: [] })
    expect(await store.listInputItems(ann, empty.id, page({}))).toEqual({
      data: [],
      hasMore: false,
    })
  })
})

test('no query returns the response of another owner', async () => {
  const { store } = fixture
  const response = await addEnded(store)
  expect(await store.find(bob, response.id)).toBeUndefined()
  expect(await store.remove(bob, response.id)).toBe(false)
  expect(await store.find(ann, response.id)).toBeDefined()
  expect(await store.remove(ann, response.id)).toBe(true)
  expect(await store.remove(ann, response.id)).toBe(false)
})
