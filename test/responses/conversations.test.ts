import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { createConversations } from '#responses/conversation-store.ts'
import type { PageRequest } from '#responses/response.ts'
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
  startStore,
  textsOf,
} from './store-fixture.ts'

let fixture: StoreFixture

beforeAll(async () => {
  fixture = await startStore()
})
afterAll(() => fixture.close())

const conversationsWith = (limits: Partial<Config['responses']> = {}) =>
  createConversations(fixture.database, {
    limits: { ...loadConfig({}).responses, ...limits },
    ttlS: () => limits.ttlS ?? loadConfig({}).responses.ttlS,
    now: fixture.now,
  })

const none = { metadata: {}, items: [] }
const oldestFirst: PageRequest = { after: null, limit: 100, order: 'asc' }

async function textsIn(id: string) {
  return textsOf(await conversationsWith().items(ann, id))
}

describe('a response in a conversation', () => {
  test('adds its input and output when it ends', async () => {
    const { id } = await conversationsWith().create(ann, {
      ...none,
      items: [message('before')],
    })
    await addEnded(fixture.store, {
      conversationId: id,
      input: [message('q1')],
      output: [message('a1'), message('a2')],
    })
    expect(await textsIn(id)).toEqual(['before', 'q1', 'a1', 'a2'])
    const slow = opened({ conversationId: id, input: [message('q2')] })
    await fixture.store.write({ ...nothing, opened: [slow] })
    expect(await textsIn(id)).toEqual(['before', 'q1', 'a1', 'a2'])
    const object = objectOf(slow.id, 'incomplete', [message('half')])
    await fixture.store.write({ ...nothing, ended: [endOf(object, { conversationId: id })] })
    expect(await textsIn(id)).toEqual(['before', 'q1', 'a1', 'a2', 'q2', 'half'])
    // The items belong to the conversation.
    expect(await fixture.store.remove(ann, slow.id)).toBe(true)
    expect(await textsIn(id)).toHaveLength(6)
  })

  test.each(['failed', 'cancelled'] as const)('adds nothing when it ends %s', async (status) => {
    const { id } = await conversationsWith().create(ann, none)
    await addEnded(fixture.store, { conversationId: id, status })
    expect(await textsIn(id)).toEqual([])
  })

  test('adds nothing to a deleted or foreign conversation', async () => {
    const { id: deleted } = await conversationsWith().create(ann, none)
    const { id: bobs } = await conversationsWith().create(bob, none)
    const running = opened({ conversationId: deleted })
    await fixture.store.write({ ...nothing, opened: [running] })
    expect(await conversationsWith().remove(ann, deleted)).toBe(true)
    const object = objectOf(running.id, 'completed')
    await fixture.store.write({ ...nothing, ended: [endOf(object, { conversationId: deleted })] })
    expect((await fixture.store.find(ann, running.id))?.object.status).toBe('completed')
    await addEnded(fixture.store, { conversationId: bobs })
    expect(await conversationsWith().items(bob, bobs)).toEqual([])
  })

  test('adds existing items only once, also when the write is repeated', async () => {
    const there = message('there', 'msg_there')
    const { id } = await conversationsWith().create(ann, { ...none, items: [there] })
    const response = opened({ conversationId: id, input: [there, message('new')] })
    const ended = [endOf(objectOf(response.id, 'completed'), { conversationId: id })]
    await fixture.store.write({ opened: [response], logged: [], ended })
    await fixture.store.write({ opened: [response], logged: [], ended })
    expect(await textsIn(id)).toEqual(['there', 'new'])
  })

  test('loses no items to concurrent responses and additions', async () => {
    const conversations = conversationsWith()
    const places = await Promise.all([1, 2, 3].map(() => conversations.create(ann, none)))
    const ids = places.map(({ id }) => id)
    const writes = Array.from({ length: 24 }, async (_, at) => {
      // Several conversations in one write, in a different order each time.
      const order = at % 2 === 0 ? ids : ids.toReversed()
      const responses = order.map((conversationId) =>
        opened({ conversationId, input: [message(`q${at}`)] }),
      )
      await fixture.store.write({
        opened: responses,
        logged: [],
        ended: responses.map(({ id, conversationId }) =>
          endOf(objectOf(id, 'completed', [message(`a${at}`)]), { conversationId }),
        ),
      })
      await conversations.addItems(ann, order[0] ?? '', [message(`added ${at}`)])
    })
    await Promise.all(writes)
    const lengths = await Promise.all(ids.map(async (id) => (await textsIn(id)).length))
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(24 * 3 * 2 + 24)
    for (const id of ids) {
      const texts: string[] = await textsIn(id)
      for (let at = 0; at < 24; at++) {
        expect(texts.indexOf(`a${at}`)).toBe(texts.indexOf(`q${at}`) + 1)
      }
    }
  })
})

describe('the items of a conversation', () => {
  test('belong to one owner in every operation', async () => {
    const conversations = conversationsWith()
    const item = message('mine', 'msg_mine')
    const { id } = await conversations.create(ann, { metadata: { a: 'b' }, items: [item] })
    expect(await conversations.find(bob, id)).toBeUndefined()
    expect(await conversations.setMetadata(bob, id, {})).toBeUndefined()
    expect(await conversations.items(bob, id)).toBeUndefined()
    expect(await conversations.listItems(bob, id, oldestFirst)).toBeUndefined()
    expect(await conversations.addItems(bob, id, [message('x')])).toBeUndefined()
    expect(await conversations.findItem(bob, id, 'msg_mine')).toBeUndefined()
    expect(await conversations.removeItem(bob, id, 'msg_mine')).toBe(false)
    expect(await conversations.remove(bob, id)).toBe(false)
    expect((await fixture.store.findItems(bob, ['msg_mine'])).size).toBe(0)
    expect((await conversations.find(ann, id))?.metadata).toEqual({ a: 'b' })
    expect(await conversations.items(ann, id)).toEqual([item])
    expect(await conversations.findItem(ann, id, 'msg_mine')).toEqual(item)
    expect((await fixture.store.findItems(ann, ['msg_mine'])).get('msg_mine')).toEqual(item)
  })

  test('are found by id, newer or older than those of responses', async () => {
    const conversations = conversationsWith()
    const add = (text: string) =>
      conversations.create(ann, { ...none, items: [message(text, 'msg_twice')] })
    const newest = async () =>
      textsOf([...(await fixture.store.findItems(ann, ['msg_twice'])).values()])
    await add('first')
    fixture.pass(10)
    await addEnded(fixture.store, { input: [message('second', 'msg_twice')] })
    expect(await newest()).toEqual(['second'])
    fixture.pass(10)
    const { id } = await add('third')
    expect(await newest()).toEqual(['third'])
    await conversations.remove(ann, id)
    expect(await newest()).toEqual(['second'])
  })

  test('may have any text and id', async () => {
    const conversations = conversationsWith()
    const items = ['a\0b', '\ud800', 'x'.repeat(9_000)].map((odd) => message(odd, odd))
    const { id } = await conversations.create(ann, { metadata: { 'k\0': '\ud800' }, items })
    expect(await conversations.items(ann, id)).toEqual(items)
    expect((await conversations.find(ann, id))?.metadata).toEqual({ 'k\0': '\ud800' })
    for (const item of items) {
      expect(await conversations.findItem(ann, id, item.id)).toEqual(item)
      const page = await conversations.listItems(ann, id, { ...oldestFirst, after: item.id })
      expect(page?.data).toEqual(items.slice(items.indexOf(item) + 1))
      expect(await conversations.find(ann, item.id)).toBeUndefined()
    }
  })

  test('are limited by count and size', async () => {
    const few = conversationsWith({ conversationItemsMax: 3 })
    const { id } = await few.create(ann, { ...none, items: [message('1'), message('2')] })
    const isFull = { kind: 'invalid_request', wireCode: 'conversation_full' }
    expect(await few.items(ann, id)).toHaveLength(2)
    await expect(few.addItems(ann, id, [message('3'), message('4')])).rejects.toMatchObject({
      ...isFull,
      param: 'items',
    })
    expect(await few.addItems(ann, id, [message('3')])).toHaveLength(1)
    await expect(few.items(ann, id)).rejects.toMatchObject({ ...isFull, param: 'conversation' })
    const one = await few.create(ann, { ...none, items: [message('1')] })
    const storedCharsMax = JSON.stringify(await few.items(ann, one.id)).length - '[]'.length
    const exact = conversationsWith({ storedCharsMax })
    expect(await exact.items(ann, one.id)).toHaveLength(1)
    expect(await exact.addItems(ann, one.id, [message('2')])).toHaveLength(1)
    await expect(exact.addItems(ann, one.id, [message('3')])).rejects.toMatchObject(isFull)
    const small = conversationsWith({ storedCharsMax: 50 })
    await expect(small.items(ann, id)).rejects.toMatchObject(isFull)
    await expect(small.addItems(ann, id, [message('5')])).rejects.toMatchObject(isFull)
    // A full conversation can be read and reduced.
    const page = await few.listItems(ann, id, oldestFirst)
    expect(textsOf(page?.data)).toEqual(['1', '2', '3'])
    expect(await few.removeItem(ann, id, page?.data[0]?.id ?? '')).toBe(true)
    expect(await few.items(ann, id)).toHaveLength(2)
  })
})

test('added items whose ids the conversation has get new ones', async () => {
  const { id } = await conversationsWith().create(ann, {
    ...none,
    items: [message('first', 'msg_1'), message('second', '1')],
  })
  const added = [message('third', 'msg_1'), message('fourth', '1'), message('fifth', 'msg_2')]
  await conversationsWith().addItems(ann, id, added)
  const items = (await conversationsWith().items(ann, id)) ?? []
  const ids = items.map((item) => item.id)
  expect(new Set(ids).size).toBe(5)
  expect(ids[2]).toStartWith('msg_')
  expect(ids[3]).toStartWith('item_')
  expect(ids[4]).toBe('msg_2')
})
