import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

let gateway: Gateway
let client: OpenAI
let otherUser: OpenAI

beforeAll(async () => {
  gateway = await startGateway()
  client = await gateway.openai()
  const apiKey = await gateway.token(['users'], 'a stranger')
  otherUser = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 })
})
afterAll(() => gateway.stop())

const say = (content: string, id?: string) => ({
  type: 'message' as const,
  role: 'user' as const,
  content,
  ...(id === undefined ? {} : { id }),
})

const failureOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'no failure',
    ({ status, code, param, error }) => ({ status, code, param, message: error?.message }),
  )

const idsOf = async (list: AsyncIterable<{ id?: string | null }>) =>
  (await Array.fromAsync(list)).map(({ id }) => id ?? '')

describe('a conversation', () => {
  test('is created with or without a body, retrieved, updated and deleted', async () => {
    const plain = await gateway.request('/v1/conversations', { method: 'POST' })
    expect(await plain.json()).toEqual({
      id: expect.stringMatching(/^conv_[0-9a-z]{26}$/),
      object: 'conversation',
      created_at: expect.any(Number),
      metadata: {},
    })
    const created = await client.conversations.create({ metadata: { topic: 'tests' }, items: [] })
    expect(Math.abs(created.created_at - Date.now() / 1000)).toBeLessThan(60)
    expect(await client.conversations.retrieve(created.id)).toMatchObject({
      ...created,
      metadata: { topic: 'tests' },
    })
    const changed = await client.conversations.update(created.id, { metadata: { topic: 'other' } })
    expect(changed).toMatchObject({ ...created, metadata: { topic: 'other' } })
    const cleared = await client.conversations.update(created.id, { metadata: null })
    expect(cleared.metadata).toEqual({})
    expect(await client.conversations.delete(created.id)).toMatchObject({
      id: created.id,
      object: 'conversation.deleted',
      deleted: true,
    })
    expect(await failureOf(client.conversations.retrieve(created.id))).toMatchObject({
      status: 404,
    })
  })

  test('begins with the given items, each with an id and all fields', async () => {
    const { id } = await client.conversations.create({
      items: [
        say('hello', 'msg_mine'),
        { role: 'assistant', content: 'hi' },
        { type: 'function_call', call_id: 'call_1', name: 'now', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'noon' },
      ],
    })
    const items = await Array.fromAsync(client.conversations.items.list(id, { order: 'asc' }))
    expect(items).toEqual([
      {
        id: 'msg_mine',
        type: 'message',
        role: 'user',
        status: 'completed',
        content: [{ type: 'input_text', text: 'hello' }],
      },
      {
        id: expect.stringMatching(/^msg_/),
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'hi', annotations: [] }],
      },
      {
        id: expect.stringMatching(/^fc_/),
        type: 'function_call',
        call_id: 'call_1',
        name: 'now',
        arguments: '{}',
        status: 'completed',
      },
      {
        id: expect.stringMatching(/^fco_/),
        type: 'function_call_output',
        call_id: 'call_1',
        output: 'noon',
        status: 'completed',
      },
    ] as unknown[] as typeof items)
  })

  test('stores encrypted content, and returns it on request', async () => {
    const { id } = await client.conversations.create({
      items: [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'not ours' }],
    })
    const [plain] = await Array.fromAsync(client.conversations.items.list(id))
    expect(plain).toEqual({ type: 'reasoning', id: 'rs_1', summary: [] })
    const include = ['reasoning.encrypted_content' as const]
    const [full] = await Array.fromAsync(client.conversations.items.list(id, { include }))
    expect(full).toMatchObject({ encrypted_content: 'not ours' })
    const found = await client.conversations.items.retrieve('rs_1', {
      conversation_id: id,
      include,
    })
    expect(found).toMatchObject({ encrypted_content: 'not ours' })
  })
})

describe('the items of a conversation', () => {
  test('are listed newest first, or oldest first, in pages', async () => {
    const { id } = await client.conversations.create()
    const added: string[] = []
    for (let round = 0; round < 3; round++) {
      const items = Array.from({ length: 20 }, (_, index) => say(`${round}.${index}`))
      const list = await client.conversations.items.create(id, { items })
      expect(list).toMatchObject({ object: 'list', has_more: false })
      expect(list.data.at(-1)?.id).toBe(list.last_id)
      added.push(...list.data.map((item) => item.id ?? ''))
    }
    const newestFirst = added.toReversed()
    const page = await client.conversations.items.list(id)
    expect(page.data.map((item) => item.id ?? '')).toEqual(newestFirst.slice(0, 20))
    expect(page.has_more).toBe(true)
    expect(await idsOf(client.conversations.items.list(id))).toEqual(newestFirst)
    expect(await idsOf(client.conversations.items.list(id, { order: 'asc', limit: 7 }))).toEqual(
      added,
    )
    expect(await idsOf(client.conversations.items.list(id, { order: 'desc', limit: 60 }))).toEqual(
      newestFirst,
    )
    const last = await client.conversations.items.list(id, { after: newestFirst[58] ?? '' })
    expect(last).toMatchObject({ has_more: false, last_id: added[0] })
  })

  test('are retrieved and deleted one by one', async () => {
    const { id } = await client.conversations.create({
      items: [say('one', 'msg_one'), say('two', 'msg_two')],
    })
    const place = { conversation_id: id }
    expect(await client.conversations.items.retrieve('msg_one', place)).toMatchObject({
      id: 'msg_one',
      content: [{ text: 'one' }],
    })
    expect(await client.conversations.items.delete('msg_one', place)).toMatchObject({ id })
    expect(await idsOf(client.conversations.items.list(id))).toEqual(['msg_two'])
    expect(await failureOf(client.conversations.items.retrieve('msg_one', place))).toMatchObject({
      status: 404,
      param: 'item_id',
    })
  })

  test('can be outputs of existing calls, and copies of existing items', async () => {
    const { id } = await client.conversations.create({
      items: [{ type: 'function_call', call_id: 'c', name: 'now', arguments: '{}' }],
    })
    await client.conversations.items.create(id, {
      items: [{ type: 'function_call_output', call_id: 'c', output: 'noon' }],
    })
    const other = await client.conversations.create({ items: [say('copied', 'msg_copied')] })
    await client.conversations.items.create(id, {
      items: [{ type: 'item_reference', id: 'msg_copied' }],
    })
    expect((await client.conversations.items.list(id)).data[0]).toMatchObject({
      id: 'msg_copied',
      content: [{ text: 'copied' }],
    })
    await client.conversations.delete(other.id)
    expect((await client.conversations.items.list(id)).data).toHaveLength(3)
  })

  test('get a new id if an item is sent twice', async () => {
    const { id } = await client.conversations.create({ items: [say('one', 'msg_same')] })
    const added = await client.conversations.items.create(id, {
      items: [say('two', 'msg_same'), say('three', 'msg_same')],
    })
    const ids = ['msg_same', ...added.data.map((item) => item.id ?? '')]
    expect(new Set(ids).size).toBe(3)
    expect(await idsOf(client.conversations.items.list(id, { order: 'asc' }))).toEqual(ids)
  })
})

describe('another user', () => {
  test('gets 404 with every method', async () => {
    const { id } = await client.conversations.create({ items: [say('mine', 'msg_mine')] })
    const askAs = async (asker: OpenAI, conversationId: string) => {
      const { conversations } = asker
      const place = { conversation_id: conversationId }
      const failures = [
        conversations.retrieve(conversationId),
        conversations.update(conversationId, { metadata: { a: 'b' } }),
        conversations.items.list(conversationId).then((page) => page.data),
        conversations.items.list(conversationId, { after: 'msg_mine' }).then((page) => page.data),
        conversations.items.create(conversationId, { items: [say('x')] }),
        conversations.items.create(conversationId, {
          items: [{ type: 'function_call_output', call_id: 'c', output: 'x' }],
        }),
        conversations.items.retrieve('msg_mine', place),
        conversations.items.delete('msg_mine', place),
        conversations.delete(conversationId),
      ].map(failureOf)
      return JSON.stringify(await Promise.all(failures)).replaceAll(conversationId, 'ID')
    }
    const absent = await askAs(client, 'conv_absent')
    expect(absent.match(/"status":404/g)).toHaveLength(9)
    expect(await askAs(otherUser, id)).toBe(absent)
    expect(await askAs(otherUser, 'conv_\u0000')).toContain('"status":404')
    expect(await idsOf(client.conversations.items.list(id))).toEqual(['msg_mine'])
  })

  test('cannot copy an item by its id', async () => {
    await client.conversations.create({ items: [say('secret', 'msg_secret')] })
    const copyRequest = otherUser.conversations.create({
      items: [{ type: 'item_reference', id: 'msg_secret' }],
    })
    expect(await failureOf(copyRequest)).toMatchObject({ status: 404, param: 'items[0].id' })
  })
})

describe('an invalid request', () => {
  const many = Array.from({ length: 21 }, () => say('x'))

  test.each<[unknown, string]>([
    [{ items: many }, 'items'],
    [{ items: 'text' }, 'items'],
    [{ items: [say('x'), 7] }, 'items[1]'],
    [{ items: [{ role: 'user', content: [] }] }, 'items[0].content'],
    [{ items: [{ type: 'function_call_output', call_id: 'c', output: '' }] }, 'items[0].call_id'],
    [{ items: [{ type: 'item_reference', id: 'msg_none' }] }, 'items[0].id'],
    [{ metadata: 'text' }, 'metadata'],
    [{ metadata: { a: 7 } }, 'metadata.a'],
    [{ metadata: Object.fromEntries(many.map((_, at) => [`k${at}`, 'v'])) }, 'metadata'],
  ])('is refused with the name of the field: %j', async (body, param) => {
    const httpResponse = await gateway.post('/v1/conversations', body)
    const { error } = Object(await httpResponse.json())
    expect(error).toMatchObject({ param })
    expect(error.message).toStartWith(param.startsWith('items[0].id') ? 'Item' : param)
    expect([400, 404]).toContain(httpResponse.status)
  })

  test.each(['limit=0', 'limit=101', 'limit=x', 'order=up', 'after=msg_none'])(
    'is refused for its query: %s',
    async (query) => {
      const { id } = await client.conversations.create({ items: [say('one')] })
      const httpResponse = await gateway.request(`/v1/conversations/${id}/items?${query}`)
      expect(httpResponse.status).toBe(400)
      expect(Object(await httpResponse.json()).error.param).toBe(query.split('=')[0])
    },
  )

  test('is refused without metadata or items', async () => {
    const { id } = await client.conversations.create()
    const refused = await Promise.all([
      gateway.post(`/v1/conversations/${id}`, {}),
      gateway.post(`/v1/conversations/${id}/items`, {}),
      gateway.post(`/v1/conversations/${id}/items`, { items: [] }),
      gateway.post('/v1/conversations', '{'),
    ])
    expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400])
  })
})
