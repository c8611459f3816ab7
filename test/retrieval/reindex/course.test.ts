import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { eventually } from '#test/support/eventually.ts'
import { ann, numberedText, type ReindexWorld, startReindexWorld } from './reindex-world.ts'
import { gateModel, mendModel } from './scripted-models.ts'

/** The course of a reindex, from its start to its end. */

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
  ids = await world.filled(name, 5)
})
afterEach(() => {
  for (const model of ['small', 'local-hash']) mendModel(world, model)
})
afterAll(() => world.close())

async function stateOf(indexId: number): Promise<unknown> {
  const [row] = await world.database.drizzle.execute(sql`
    select state from embedding_index where id = ${indexId}`)
  return row?.['state']
}

async function modelsOf(fileId: string): Promise<unknown[]> {
  const rows = await world.database.drizzle.execute<{ model: string }>(sql`
    select model from file_index join embedding_index on id = index_id
    where file_id = ${fileId}::uuid order by id`)
  return rows.map(({ model }) => model)
}

const everyFile = () => ids.map((id, at) => `${id}: ${numberedText(at)}`).toSorted()

test('in the end the target is all there is, and the source is kept for a while', async () => {
  const id = await world.begin('small', [name])
  const done = await world.until(id, 'completed')
  expect(done.counters).toEqual({ completed: 5, failed: 0, skipped: 0, total: 5, added: 0 })
  expect(done.source).toMatchObject({ model: 'local-hash', dims: 384 })
  expect(done.target).toMatchObject({ model: 'small', dims: 64 })
  expect((await world.found(name, 'common')).toSorted()).toEqual(everyFile())
  expect(await stateOf(done.source.indexId)).toBe('warm')
  expect(await stateOf(done.target.indexId)).toBe('active')
  const { index, target } = await world.collections.find(ann, name)
  expect({ index, target }).toMatchObject({ index: { model: 'small' }, target: null })
})

test('an upload goes to the target alone, before all that waits, and is found at once', async () => {
  const gate = gateModel(world, 'small', ({ text }) => !text.includes('upload'))
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const uploaded = await world.upload(`new${collections}.txt`, 'an upload of common interest', [
    name,
  ])
  await world.settled()
  expect(await world.found(name, 'upload', 'keyword')).toEqual([
    `${uploaded}: an upload of common interest`,
  ])
  expect(await world.found(name, 'common')).toHaveLength(6)
  expect(await modelsOf(uploaded)).toEqual(['small'])
  const running = await world.reindexes.find(id)
  expect(running).toMatchObject({ status: 'running', counters: { total: 5, added: 1 } })
  gate.open()
  const { counters } = await world.until(id, 'completed')
  expect(counters).toEqual({ completed: 5, failed: 0, skipped: 0, total: 5, added: 1 })
  expect(await world.found(name, 'common')).toHaveLength(6)
})

test('what is deleted meanwhile is skipped, and holds nothing up', async () => {
  const gate = gateModel(world, 'small')
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const [first = '', second = ''] = ids
  await world.files.deleteFile(ann, { id: first, ifVersion: null })
  await world.collections.members.remove(ann, name, second)
  gate.open()
  const { counters } = await world.until(id, 'completed')
  expect(counters).toEqual({ completed: 3, failed: 0, skipped: 2, total: 5, added: 0 })
  expect(await world.found(name, 'common')).toHaveLength(3)
})

test('a change of a file during a reindex is found, and its former content until then', async () => {
  const gate = gateModel(world, 'small')
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const [first = ''] = ids
  await world.replace(first, 'common words anew')
  expect(await world.found(name, 'number0', 'keyword')).toHaveLength(1)
  gate.open()
  await world.until(id, 'completed')
  expect(await world.found(name, 'anew', 'keyword')).toEqual([`${first}: common words anew`])
  expect(await world.found(name, 'number0', 'keyword')).toEqual([])
})

test('what waits in the trash is there when it comes back after the end', async () => {
  const [first = ''] = ids
  const node = { kind: 'file', id: first } as const
  await world.files.remove(ann, node, { isRecursive: false, ifVersion: null })
  await world.until(await world.begin('small', [name]), 'completed')
  expect(await world.found(name, 'common')).toHaveLength(4)
  await world.files.restore(ann, node, { onConflict: 'fail' })
  expect((await world.found(name, 'common')).toSorted()).toEqual(everyFile())
})

test('a content that is purged from the trash meanwhile holds nothing up', async () => {
  const gate = gateModel(world, 'small')
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const [first = ''] = ids
  const node = { kind: 'file', id: first } as const
  await world.files.remove(ann, node, { isRecursive: false, ifVersion: null })
  // As the trash is emptied: the name stays behind for a while.
  await world.database.drizzle.execute(sql`delete from file where node_id = ${first}::uuid`)
  gate.open()
  const { counters } = await world.until(id, 'completed')
  expect(counters).toEqual({ completed: 4, failed: 0, skipped: 1, total: 5, added: 0 })
})

test('collections that are not named stay where they are', async () => {
  await world.collection(`more${collections}`)
  const [first = ''] = ids
  await world.collections.members.add(
    ann,
    `more${collections}`,
    [{ fileId: first, attributes: null }],
    null,
  )
  const { counters } = await world.until(await world.begin('small', [name]), 'completed')
  expect(counters.total).toBe(5)
  const { index } = await world.collections.find(ann, `more${collections}`)
  expect(index).toMatchObject({ model: 'local-hash', state: 'active' })
  expect(await modelsOf(first)).toEqual(['local-hash', 'small'])
  expect(await world.found(`more${collections}`, 'common')).toHaveLength(1)
  expect((await world.found(name, 'common')).toSorted()).toEqual(everyFile())
})

test('a file that a reindex took past the source is renewed there when it is wanted', async () => {
  await world.collection(`more${collections}`)
  const gate = gateModel(world, 'small')
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  const [first = ''] = ids
  await world.replace(first, 'common words anew')
  await world.collections.members.add(
    ann,
    `more${collections}`,
    [{ fileId: first, attributes: null }],
    null,
  )
  await eventually('it is found where it was added', async () => {
    return (await world.found(`more${collections}`, 'anew', 'keyword')).length === 1
  })
  gate.open()
  await world.until(id, 'completed')
})

test('a new way of splitting is a reindex with the same model', async () => {
  const wish = { embeddingModel: 'local-hash', collections: [name] }
  const chunking = { tokensMax: 100, overlapTokens: 10 }
  const signal = AbortSignal.timeout(5_000)
  const { id } = await world.reindexes.start(ann.userId, { ...wish, chunking }, signal)
  await world.until(id, 'completed')
  expect((await world.collections.find(ann, name)).chunking).toEqual(chunking)
  await expect(world.reindexes.start(ann.userId, { ...wish, chunking }, signal)).rejects.toThrow(
    'already',
  )
})

test('passages that were written down and are not there are noticed before the end', async () => {
  const gate = gateModel(world, 'small', ({ text }) => text.includes('number4'))
  const id = await world.begin('small', [name])
  await eventually('four files are there', async () => {
    return (await world.reindexes.find(id)).counters.completed === 4
  })
  await world.database.drizzle.execute(sql`
    delete from ${sql.raw(`chunk_${(await world.reindexes.find(id)).target.indexId}`)} where file_id = ${ids[0] ?? ''}::uuid`)
  gate.open()
  await world.until(id, 'needs_attention')
  const page = { limit: 10, order: 'asc', after: null, before: null } as const
  expect((await world.reindexes.failures(id, page)).items).toMatchObject([
    { fileId: ids[0], filename: `${name}-0.txt`, code: 'not_in_target' },
  ])
  expect((await world.found(name, 'common')).toSorted()).toEqual(everyFile())
  await world.reindexes.act(id, 'retry')
  await world.until(id, 'completed')
  expect((await world.found(name, 'common')).toSorted()).toEqual(everyFile())
})
