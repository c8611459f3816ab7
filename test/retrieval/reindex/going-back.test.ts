import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { eventually } from '#test/support/eventually.ts'
import { ann, numberedText, type ReindexWorld, startReindexWorld } from './reindex-world.ts'
import { breakModel, gateModel, mendModel, refusal } from './scripted-models.ts'

/** Cancelling a reindex, and reverting one, without losing a file. */

let world: ReindexWorld
let name = ''
let ids: string[] = []
let collections = 0
beforeAll(async () => {
  world = await startReindexWorld()
  await world.start()
})
beforeEach(async () => {
  collections += 1
  name = `docs${collections}`
  ids = await world.filled(name, 4)
})
afterEach(() => {
  for (const model of ['small', 'local-hash']) mendModel(world, model)
})
afterAll(() => world.close())

const everyFile = () => ids.map((id, at) => `${id}: ${numberedText(at)}`)

async function expectFound(...more: string[]): Promise<void> {
  const found = await world.found(name, 'common')
  expect(found.toSorted()).toEqual([...everyFile(), ...more].toSorted())
}

/** Whether nothing is left of an index. */
async function isGone(indexId: number): Promise<boolean> {
  const rows = await world.database.drizzle.execute(sql`
    select 1 from embedding_index where id = ${indexId}
    union all select 1 from file_index where index_id = ${indexId}
    union all select 1 from pg_class where relname = ${`chunk_${indexId}`}`)
  return rows.length === 0
}

function upload(text: string): Promise<string> {
  return world.upload(`${name}-${text}.txt`, text, [name])
}

test('a file that came during a reindex is there after its cancel, and the target is not', async () => {
  const gate = gateModel(world, 'small', ({ text }) => text.includes('number'))
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const early = `${await upload('common early')}: common early`
  await world.settled()
  const back = gateModel(world, 'local-hash', ({ text }) => text.includes('early'))
  const cancelling = await world.reindexes.act(id, 'cancel')
  expect(cancelling.status).toBe('cancelling')
  // While it goes back, what comes now is in the source at once, and nothing is missing.
  const late = `${await upload('common late')}: common late`
  await world.settled()
  await expectFound(early, late)
  expect((await world.reindexes.act(id, 'cancel')).status).toBe('cancelling')
  back.open()
  const { counters, target } = await world.until(id, 'cancelled')
  gate.open()
  expect(counters).toMatchObject({ total: 4, completed: 0, failed: 0, skipped: 4 })
  await expectFound(early, late)
  expect(await isGone(target.indexId)).toBe(true)
  expect((await world.reindexes.act(id, 'cancel')).status).toBe('cancelled')
  expect((await world.collections.find(ann, name)).index.model).toBe('local-hash')
})

test('a file that changed during a reindex is found by its new content after a cancel', async () => {
  const gate = gateModel(world, 'small', ({ text }) => text.includes('number'))
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const [first = ''] = ids
  await world.replace(first, 'common words anew')
  await world.settled()
  await world.reindexes.act(id, 'cancel')
  expect(await world.found(name, 'anew', 'keyword')).toHaveLength(1)
  await world.until(id, 'cancelled')
  gate.open()
  expect(await world.found(name, 'anew', 'keyword')).toEqual([`${first}: common words anew`])
  expect(await world.found(name, 'number0', 'keyword')).toEqual([])
})

test('files that the source cannot have hold a cancel until somebody says so', async () => {
  const gate = gateModel(world, 'small', ({ text }) => text.includes('number'))
  breakModel(world, 'local-hash', ({ text }) => (text.includes('odd') ? refusal() : null))
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const odd = [`${await upload('common odd one')}: common odd one`]
  odd.push(`${await upload('common odd two')}: common odd two`)
  await world.settled()
  await world.reindexes.act(id, 'cancel')
  await eventually('it says what is in its way', async () =>
    Boolean((await world.reindexes.find(id)).lastError?.includes('failed in the source: 2.')),
  )
  await expectFound(...odd)
  const page = { limit: 10, order: 'asc', after: null, before: null } as const
  expect((await world.reindexes.failures(id, page)).items).toHaveLength(2)
  breakModel(world, 'local-hash', ({ text }) => (text.includes('two') ? refusal() : null))
  await world.reindexes.act(id, 'retry')
  await eventually('one of them came back', async () =>
    Boolean((await world.reindexes.find(id)).lastError?.includes('failed in the source: 1.')),
  )
  await expectFound(...odd)
  await world.reindexes.act(id, 'accept')
  await world.until(id, 'cancelled')
  gate.open()
  await expectFound(...odd.slice(0, 1))
})

test('a revert brings back what came and changed since the end', async () => {
  const id = await world.begin('small', [name])
  const { source, target } = await world.until(id, 'completed')
  const since = `${await upload('common since')}: common since`
  const [first = ''] = ids
  await world.replace(first, 'common words anew')
  await world.settled()
  const gate = gateModel(world, 'local-hash')
  expect((await world.reindexes.act(id, 'revert')).status).toBe('reverting')
  expect(await world.found(name, 'common')).toHaveLength(5)
  expect(await world.found(name, 'anew', 'keyword')).toHaveLength(1)
  gate.open()
  const { counters } = await world.until(id, 'reverted')
  expect(counters).toMatchObject({ total: 4, completed: 4, failed: 0, skipped: 0 })
  expect(await world.found(name, 'common')).toHaveLength(5)
  expect(await world.found(name, 'anew', 'keyword')).toEqual([`${first}: common words anew`])
  expect(await world.found(name, 'since', 'keyword')).toEqual([since])
  expect(await isGone(target.indexId)).toBe(true)
  expect((await world.collections.find(ann, name)).index.id).toBe(source.indexId)
  expect((await world.reindexes.act(id, 'revert')).status).toBe('reverted')
})

test('a revert leaves what others have in the target since', async () => {
  const id = await world.begin('small', [name])
  const { target } = await world.until(id, 'completed')
  const other = await world.filled(`other${collections}`, 1)
  await world.until(await world.begin('small', [`other${collections}`]), 'completed')
  const wish = { ...plain, name: `third${collections}`, embeddingModel: 'small' }
  await world.collections.create(ann, wish)
  const third = await world.upload(`${name}-third.txt`, 'common third', [wish.name])
  await world.settled()
  await world.reindexes.act(id, 'revert')
  await world.until(id, 'reverted')
  await expectFound()
  expect(await world.found(wish.name, 'common')).toEqual([`${third}: common third`])
  expect(await world.found(`other${collections}`, 'common')).toHaveLength(other.length)
  const rows = await world.database.drizzle.execute(sql`
    select 1 from file_index where index_id = ${target.indexId}
      and file_id = ${ids[0] ?? ''}::uuid`)
  expect(rows).toHaveLength(0)
})

const plain = {
  title: null,
  description: null,
  metadata: {},
  accessMode: 'files' as const,
  chunking: null,
  folderId: null,
}

test('who has come to a third index since does not go back to the first', async () => {
  const id = await world.begin('small', [name])
  await world.until(id, 'completed')
  const gate = gateModel(world, 'large')
  const next = await world.begin('large', [name])
  await world.until(next, 'running')
  await expect(world.reindexes.act(id, 'revert')).rejects.toMatchObject({
    wireCode: 'reindex_running',
  })
  gate.open()
  await world.until(next, 'completed')
  mendModel(world, 'large')
  await expect(world.reindexes.act(id, 'revert')).rejects.toMatchObject({
    wireCode: 'reindex_superseded',
  })
  await expectFound()
})

test('a reindex that is cancelled before anybody took it up leaves nothing behind', async () => {
  const idle = await startReindexWorld()
  await idle.collection('docs')
  const id = await idle.begin('small')
  const { target } = await idle.reindexes.act(id, 'cancel')
  await idle.start()
  const cancelled = await idle.until(id, 'cancelled')
  expect(cancelled.counters).toMatchObject({ total: 0, completed: 0, skipped: 0 })
  const rows = await idle.database.drizzle.execute(sql`
    select 1 from embedding_index where id = ${target.indexId}`)
  expect(rows).toHaveLength(0)
  await idle.close()
})

test('after its time the source is dropped, and there is no way back', async () => {
  const brief = await startReindexWorld({ warmHours: 1 / 36_000 })
  await brief.start()
  const [fileId] = await brief.filled('docs', 1)
  const id = await brief.begin('small')
  const { source } = await brief.until(id, 'completed')
  await eventually('the source is gone', async () => {
    const rows = await brief.database.drizzle.execute(sql`
      select 1 from embedding_index where id = ${source.indexId}
      union all select 1 from pg_class where relname = ${`chunk_${source.indexId}`}`)
    return rows.length === 0
  })
  await expect(brief.reindexes.act(id, 'revert')).rejects.toMatchObject({
    status: 410,
    wireCode: 'source_dropped',
  })
  expect(await brief.found('docs', 'common')).toEqual([`${fileId}: ${numberedText(0)}`])
  await brief.close()
})
