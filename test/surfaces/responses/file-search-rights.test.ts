import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Response } from 'openai/resources/responses/responses'
import { AppError } from '#lib/errors.ts'
import type { Search } from '#retrieval/search/search.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import {
  ann,
  bob,
  clientOf,
  fillCollection,
  type Person,
  shareWithAll,
} from '#test/support/fill-collection.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'

/** Rights of file search: every search runs as the caller, not as the creator of the agent. */

let gateway: Gateway
let upstream: ReplayUpstream
let openId: string
let bobsId: string
beforeAll(async () => {
  upstream = await startReplayUpstream({ body: '' })
  gateway = await startGateway({
    upstream: [{ api: 'demo' }, { url: upstream.baseUrl, models: ['chat'] }],
  })
  const fill = (who: Person, name: string, files: Record<string, string>) =>
    fillCollection(gateway, who, { name, files })
  await fill(ann, 'secret', { 'plan.txt': 'The holiday party is on Friday.' })
  const bobs = await fill(bob, 'bobs', { 'bob.txt': 'Bob is on holiday.' })
  bobsId = bobs.id
  const { id, fileIds } = await fill(ann, 'open', { 'menu.txt': 'For the holiday there is soup.' })
  openId = id
  await shareWithAll(gateway, ann, '/collections/open')
  await shareWithAll(gateway, ann, `/files/${fileIds['menu.txt']}`)
})
beforeEach(() => {
  upstream.answer(({ body }) => ({
    body: chatAnswer(body).replaceAll('"{}"', JSON.stringify('{"query":"holiday"}')),
  }))
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

async function ask(who: Person, fields: { model?: string; collections?: string[] }) {
  const { model = 'chat', collections } = fields
  const client = await clientOf(gateway, who, { fetch: checkedFetch })
  return client.responses.create({
    model,
    input: 'When is the holiday?',
    store: false,
    include: ['file_search_call.results'],
    ...(collections === undefined
      ? {}
      : { tools: [{ type: 'file_search', vector_store_ids: collections }] }),
  })
}

function searchOf({ output }: Response) {
  const call = output.find(({ type }) => type === 'file_search_call')
  if (call?.type !== 'file_search_call') throw new Error('no search')
  return { status: call.status, files: call.results?.map(({ filename }) => filename) ?? null }
}

/** The result of the last call, as sent to the model. */
function resultText(): string {
  const { messages } = JSON.parse(upstream.requests.at(-1)?.body ?? '{}')
  return messages.at(-1).content
}

/** The id of a collection that ann deletes once an agent searches it. */
async function deletedCollection(): Promise<string> {
  const { id } = await fillCollection(gateway, ann, { name: 'gone', files: {} })
  doomed.push(id)
  return id
}
const doomed: string[] = []

/** An agent of ann, to whom the collections are visible while it is made. */
async function makeAgent(collections: string[], model = 'chat'): Promise<string> {
  const client = await clientOf(gateway, bob)
  const grant = { principal: { type: 'user', subject: ann.subject }, role: 'viewer' }
  const share = await client.post<{ id: string }>(`/collections/${bobsId}/shares`, { body: grant })
  const made = await postAgent(collections, model)
  await client.delete(`/collections/${bobsId}/shares/${share.id}`)
  for (const id of doomed.splice(0)) {
    await (await clientOf(gateway, ann)).delete(`/collections/${id}?force=true`)
  }
  return made
}

async function postAgent(collections: string[], model: string): Promise<string> {
  const httpResponse = await gateway.post('/v1/agents', {
    name: 'Helper',
    model,
    collections,
    visibility: { kind: 'everyone' },
  })
  return String(Object(await httpResponse.json()).model_id)
}

describe('a named collection', () => {
  test('returns its content to its owner', async () => {
    expect(searchOf(await ask(ann, { collections: ['secret', 'open'] }))).toEqual({
      status: 'completed',
      files: expect.arrayContaining(['plan.txt', 'menu.txt']),
    })
  })

  test('that is hidden is treated as unknown, and the model continues', async () => {
    for (const name of ['secret', 'nowhere']) {
      const response = await ask(bob, { collections: ['open', name] })
      expect(searchOf(response)).toEqual({ status: 'failed', files: null })
      expect(resultText()).toBe(`The search failed: There is no collection "${name}".`)
      expect(response.status).toBe('completed')
      expect(response.output_text).not.toBe('')
    }
  })

  test('whose files are hidden returns nothing of them', async () => {
    await shareWithAll(gateway, ann, '/collections/secret')
    expect(searchOf(await ask(bob, { collections: ['secret'] }))).toEqual({
      status: 'completed',
      files: [],
    })
  })
})

test('the names of a tool become ids at once, also of a background response', async () => {
  const client = await clientOf(gateway, ann)
  const old = await fillCollection(gateway, ann, { name: 'renamed', files: {} })
  const tools = [{ type: 'file_search' as const, vector_store_ids: ['open', 'renamed', 'nowhere'] }]
  for (const background of [false, true]) {
    const made = await client.responses.create({ model: 'chat', input: 'Hi', tools, background })
    const ids = [openId, old.id, 'nowhere']
    expect(made.tools).toMatchObject([{ vector_store_ids: ids }])
    expect((await client.responses.retrieve(made.id)).tools).toEqual(made.tools)
  }
})

test('an ambiguous name of a tool is refused with the ids that the user may see', async () => {
  const cy: Person = { subject: 'cy', groups: ['users'] }
  const ids: string[] = []
  for (const who of [ann, bob]) {
    const { id } = await fillCollection(gateway, who, { name: 'twice', files: {} })
    await shareWithAll(gateway, who, `/collections/${id}`)
    ids.push(id)
  }
  const refused = ask(cy, { collections: ['open', 'twice'] }).catch((error: unknown) => error)
  expect(await refused).toMatchObject({
    status: 400,
    code: 'ambiguous_name',
    param: 'tools[0].vector_store_ids[1]',
    message: expect.stringContaining(`${ids[0]} (tester/twice), ${ids[1]} (bob/twice)`),
  })
})

describe('an agent with collections', () => {
  test('searches them for every user, within the rights of the user', async () => {
    const model = await makeAgent([openId, bobsId, await deletedCollection()])
    expect(searchOf(await ask(ann, { model }))).toEqual({
      status: 'completed',
      files: ['menu.txt'],
    })
    expect(resultText()).toStartWith('2 of the 3 collections of this search do not exist')
    expect(resultText()).not.toContain('bobs')
    const { files } = searchOf(await ask(bob, { model }))
    expect(files?.toSorted()).toEqual(['bob.txt', 'menu.txt'])
    expect(resultText()).toStartWith('1 of the 3 collections')
  })

  test('returns nothing if nothing is visible, and says so', async () => {
    const model = await makeAgent([await deletedCollection()])
    expect(searchOf(await ask(ann, { model }))).toEqual({ status: 'completed', files: [] })
    expect(resultText()).toStartWith('1 of the 1 collections')
    expect(resultText()).toContain('Nothing was found.')
  })

  test('searches them together with those that the client names', async () => {
    const model = await makeAgent(['open'])
    const { files } = searchOf(await ask(bob, { model, collections: ['bobs', 'open'] }))
    expect(files?.toSorted()).toEqual(['bob.txt', 'menu.txt'])
    expect(resultText()).not.toContain('are not there')
  })

  test('cites them', async () => {
    const model = await makeAgent(['open'], 'demo-fast')
    const response = await ask(bob, { model })
    expect(response.output.map(({ type }) => type)).toEqual(['file_search_call', 'message'])
    expect(JSON.stringify(response.output)).toContain('"type":"file_citation"')
    expect(response.output_text).toContain('For the holiday there is soup.')
  })

  test('gets no search function without collections', async () => {
    await ask(ann, { model: await makeAgent([]) })
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? '').tools).toBeUndefined()
  })
})

describe('a search that fails', () => {
  const rows: [name: string, search: Search, resultText: string][] = [
    [
      'with an expected error',
      async () => {
        throw new AppError('service_unavailable', 'The search takes too long.')
      },
      'The search failed: The search takes too long.',
    ],
    [
      'with an unexpected error',
      async () => {
        throw new Error('relation "secret" does not exist')
      },
      'The search failed: an internal error occurred.',
    ],
  ]
  test.each(rows)(
    '%s is reported to the model, and does not fail the response',
    async (_, search, sentence) => {
      const failing = await startGateway({
        upstream: [{ url: upstream.baseUrl, models: ['chat'] }],
        search,
      })
      const client = await failing.openai()
      const response = await client.responses.create({
        model: 'chat',
        input: 'When is the holiday?',
        tools: [{ type: 'file_search', vector_store_ids: ['open'] }],
      })
      expect(searchOf(response)).toEqual({ status: 'failed', files: null })
      expect(response.status).toBe('completed')
      expect(resultText()).toBe(sentence)
      const logged = failing.logLines.some((line) => line.includes('file search failed'))
      expect(logged).toBe(sentence.includes('internal error'))
      await failing.stop()
    },
  )
})
