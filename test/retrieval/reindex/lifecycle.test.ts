import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { eventually } from '#test/support/eventually.ts'
import {
  ann,
  annContext,
  numberedText,
  type ReindexHarness,
  startReindexHarness,
} from './reindex-harness.ts'
import { gateModel, restoreModel } from './scripted-models.ts'

/** A reindex from its start to its completion. */

let harness: ReindexHarness
let name = ''
let ids: string[] = []
let collections = 0
beforeAll(async () => {
  harness = await startReindexHarness()
  await harness.start()
})
beforeEach(async () => {
  collections += 1
  name = `docs${collections}`
  ids = await harness.createFilled(name, 5)
})
afterEach(() => {
  for (const model of ['small', 'local-hash']) restoreModel(harness, model)
})
afterAll(() => harness.close())

async function stateOf(indexId: number): Promise<unknown> {
  const [row] = await harness.database.drizzle.execute(sql`
    select state from embedding_index where id = ${indexId}`)
  return row?.['state']
}

async function modelsOf(fileId: string): Promise<unknown[]> {
  const rows = await harness.database.drizzle.execute<{ model: string }>(sql`
    select model from file_index join embedding_index on id = index_id
    where file_id = ${fileId}::uuid order by id`)
  return rows.map(({ model }) => model)
}

const everyFile = () => ids.map((id, at) => `${id}: ${numberedText(at)}`).toSorted()

test('a completed reindex uses the target and retains the source', async () => {
  const id = await harness.startReindex('small', [name])
  const done = await harness.until(id, 'completed')
  expect(done.counters).toEqual({ completed: 5, failed: 0, skipped: 0, total: 5, added: 0 })
  expect(done.sourceSpec).toMatchObject({ model: 'local-hash', dims: 384 })
  expect(done.targetSpec).toMatchObject({ model: 'small', dims: 64 })
  expect((await harness.found(name, 'common')).toSorted()).toEqual(everyFile())
  expect(await stateOf(done.sourceIndexId)).toBe('warm')
  expect(await stateOf(done.targetIndexId)).toBe('active')
  const { index, target } = await harness.collections.find(ann, name)
  expect({ index, target }).toMatchObject({ index: { model: 'small' }, target: null })
})

test('an upload goes to the target only, before pending files, and is found', async () => {
  const gate = gateModel(harness, 'small', ({ text }) => !text.includes('upload'))
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const uploaded = await harness.upload(`new${collections}.txt`, 'an upload of common interest', [
    name,
  ])
  await harness.settled()
  expect(await harness.found(name, 'upload', 'keyword')).toEqual([
    `${uploaded}: an upload of common interest`,
  ])
  expect(await harness.found(name, 'common')).toHaveLength(6)
  expect(await modelsOf(uploaded)).toEqual(['small'])
  const running = await harness.reindexes.find(id)
  expect(running).toMatchObject({ status: 'running', counters: { total: 5, added: 1 } })
  gate.open()
  const { counters } = await harness.until(id, 'completed')
  expect(counters).toEqual({ completed: 5, failed: 0, skipped: 0, total: 5, added: 1 })
  expect(await harness.found(name, 'common')).toHaveLength(6)
})

test('a completed file that changes again stays counted as completed', async () => {
  const held = [numberedText(4), 'changed']
  const gate = gateModel(harness, 'small', ({ text }) => held.some((part) => text.includes(part)))
  const id = await harness.startReindex('small', [name])
  const completed = async () => (await harness.reindexes.find(id)).counters.completed
  await eventually('four files are completed', async () => (await completed()) === 4)
  await harness.replace(ids[0] ?? '', 'changed and of common interest')
  expect(await completed()).toBe(4)
  gate.open()
  const { counters } = await harness.until(id, 'completed')
  expect(counters.completed).toBe(5)
})

test('completed files that are deleted or removed stay completed', async () => {
  const gate = gateModel(harness, 'small', ({ text }) => text.includes(numberedText(4)))
  const id = await harness.startReindex('small', [name])
  const counters = async () => (await harness.reindexes.find(id)).counters
  await eventually('four files are completed', async () => (await counters()).completed === 4)
  const before = await counters()
  const [first = '', second = ''] = ids
  await harness.files.deleteFile(ann, { id: first, ifVersion: null })
  expect(await counters()).toEqual(before)
  await harness.collections.members.remove(ann, name, second)
  expect(await counters()).toEqual(before)
  gate.open()
  const ended = await harness.until(id, 'completed')
  expect(ended.counters).toEqual({ completed: 5, failed: 0, skipped: 0, total: 5, added: 0 })
})

test('files deleted during a reindex are skipped', async () => {
  const gate = gateModel(harness, 'small')
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const [first = '', second = ''] = ids
  await harness.files.deleteFile(ann, { id: first, ifVersion: null })
  await harness.collections.members.remove(ann, name, second)
  gate.open()
  const { counters } = await harness.until(id, 'completed')
  expect(counters).toEqual({ completed: 3, failed: 0, skipped: 2, total: 5, added: 0 })
  expect(await harness.found(name, 'common')).toHaveLength(3)
})

test('a file changed during a reindex is found by its former content until the new one is indexed', async () => {
  const gate = gateModel(harness, 'small')
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const [first = ''] = ids
  await harness.replace(first, 'common words anew')
  expect(await harness.found(name, 'number0', 'keyword')).toHaveLength(1)
  gate.open()
  await harness.until(id, 'completed')
  expect(await harness.found(name, 'anew', 'keyword')).toEqual([`${first}: common words anew`])
  expect(await harness.found(name, 'number0', 'keyword')).toEqual([])
})

test('a file restored from the trash after the completion is found', async () => {
  const [first = ''] = ids
  const node = { kind: 'file', id: first } as const
  await harness.files.remove(ann, node, { isRecursive: false, ifVersion: null })
  await harness.until(await harness.startReindex('small', [name]), 'completed')
  expect(await harness.found(name, 'common')).toHaveLength(4)
  await harness.files.restore(ann, node, { onConflict: 'fail' })
  expect((await harness.found(name, 'common')).toSorted()).toEqual(everyFile())
})

test('a file purged from the trash during a reindex does not stop it', async () => {
  const gate = gateModel(harness, 'small')
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const [first = ''] = ids
  const node = { kind: 'file', id: first } as const
  await harness.files.remove(ann, node, { isRecursive: false, ifVersion: null })
  // Emptying the trash deletes the content before the node.
  await harness.database.drizzle.execute(sql`delete from file where node_id = ${first}::uuid`)
  gate.open()
  const { counters } = await harness.until(id, 'completed')
  expect(counters).toEqual({ completed: 4, failed: 0, skipped: 1, total: 5, added: 0 })
})

test('other collections keep their index', async () => {
  await harness.collection(`more${collections}`)
  const [first = ''] = ids
  await harness.collections.members.add(
    ann,
    `more${collections}`,
    [{ fileId: first, attributes: null }],
    null,
  )
  const { counters } = await harness.until(await harness.startReindex('small', [name]), 'completed')
  expect(counters.total).toBe(5)
  const { index } = await harness.collections.find(ann, `more${collections}`)
  expect(index).toMatchObject({ model: 'local-hash', state: 'active' })
  expect(await modelsOf(first)).toEqual(['local-hash', 'small'])
  expect(await harness.found(`more${collections}`, 'common')).toHaveLength(1)
  expect((await harness.found(name, 'common')).toSorted()).toEqual(everyFile())
})

test('a file outdated in the source is updated there when a collection needs it', async () => {
  await harness.collection(`more${collections}`)
  const gate = gateModel(harness, 'small')
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const [first = ''] = ids
  await harness.replace(first, 'common words anew')
  await harness.collections.members.add(
    ann,
    `more${collections}`,
    [{ fileId: first, attributes: null }],
    null,
  )
  await eventually('it is found where it was added', async () => {
    return (await harness.found(`more${collections}`, 'anew', 'keyword')).length === 1
  })
  gate.open()
  await harness.until(id, 'completed')
})

test('a change of chunking is a reindex with the same model', async () => {
  const params = { embeddingModel: 'local-hash', collections: [name] }
  const chunking = { tokensMax: 100, overlapTokens: 10 }
  const { id } = await harness.reindexes.start(annContext(), { ...params, chunking })
  await harness.until(id, 'completed')
  expect((await harness.collections.find(ann, name)).chunking).toEqual(chunking)
  await expect(harness.reindexes.start(annContext(), { ...params, chunking })).rejects.toThrow(
    'already',
  )
})

test('verification searches for samples, and detects wrong vectors', async () => {
  // A search returns ten passages, so fewer would all be found.
  const many = `many${collections}`
  const [first = ''] = await harness.createFilled(many, 15)
  const gate = gateModel(harness, 'small', ({ text }) => text.includes('number14'))
  const id = await harness.startReindex('small', [many])
  await eventually('all files but one are there', async () => {
    return (await harness.reindexes.find(id)).counters.completed === 14
  })
  const { drizzle } = harness.database
  const table = sql.raw(`chunk_${(await harness.reindexes.find(id)).targetIndexId}`)
  const ofFirst = sql`from ${table} where file_id = ${first}::uuid`
  const [row] = await drizzle.execute<{ e: string }>(sql`select e::text ${ofFirst}`)
  const opposite = JSON.stringify(JSON.parse(row?.e ?? '').map((value: number) => -value))
  const type = sql.raw(harness.database.kind === 'pglite' ? 'vector' : 'halfvec')
  await drizzle.execute(sql`
    update ${table} set e = ${opposite}::${type} where file_id = ${first}::uuid`)
  gate.open()
  await harness.until(id, 'needs_attention')
  const page = { limit: 10, order: 'asc', after: null, before: null } as const
  expect((await harness.reindexes.failures(id, page)).items).toMatchObject([
    { file_id: first, code: 'not_in_target' },
  ])
  await harness.act(id, 'retry')
  await harness.until(id, 'completed')
})

test('verification detects missing passages', async () => {
  const gate = gateModel(harness, 'small', ({ text }) => text.includes('number4'))
  const id = await harness.startReindex('small', [name])
  await eventually('four files are there', async () => {
    return (await harness.reindexes.find(id)).counters.completed === 4
  })
  await harness.database.drizzle.execute(sql`
    delete from ${sql.raw(`chunk_${(await harness.reindexes.find(id)).targetIndexId}`)} where file_id = ${ids[0] ?? ''}::uuid`)
  gate.open()
  await harness.until(id, 'needs_attention')
  const page = { limit: 10, order: 'asc', after: null, before: null } as const
  expect((await harness.reindexes.failures(id, page)).items).toMatchObject([
    { file_id: ids[0], filename: `${name}-0.txt`, code: 'not_in_target' },
  ])
  expect((await harness.found(name, 'common')).toSorted()).toEqual(everyFile())
  await harness.act(id, 'retry')
  await harness.until(id, 'completed')
  expect((await harness.found(name, 'common')).toSorted()).toEqual(everyFile())
})

test('a model for short texts gets parts of passages, with the name of their file', async () => {
  const plain = harness.embedders.get('small')
  if (plain === undefined) throw new Error('no model')
  harness.embedders.set('short', {
    ...plain,
    model: 'short',
    passageTokensMax: 100,
    embed: (texts, options) =>
      plain.embed(
        texts.map(() => (options.title === 'far' ? 'zebra' : 'common')),
        options,
      ),
  })
  const sentence =
    'The pump is of common interest, and is switched off before its cover is opened. '
  ids.push(await harness.upload('long.txt', sentence.repeat(100), [name]))
  ids.push(await harness.upload('far.txt', 'zebra', [name]))
  await harness.settled()
  const done = await harness.until(await harness.startReindex('short', [name]), 'completed')
  expect(done.counters).toMatchObject({ completed: 7, failed: 0 })
  expect(done.targetSpec).toEqual({
    ...done.sourceSpec,
    model: 'short',
    dims: 64,
    partTokensMax: 100,
  })
  const counts = await harness.database.drizzle.execute<{ chunks: number }>(sql`
    select chunks from file_index where file_id = ${ids[5] ?? ''}::uuid order by index_id`)
  expect(counts.map(({ chunks }) => chunks)).toEqual([3, expect.any(Number)])
  expect(counts[1]?.chunks).toBeGreaterThan(15)
})
