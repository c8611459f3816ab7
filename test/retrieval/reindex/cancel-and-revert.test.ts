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
import { breakModel, gateModel, refusal, restoreModel } from './scripted-models.ts'

/** Cancelling and reverting reindexes without losing files. */

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
  ids = await harness.createFilled(name, 4)
})
afterEach(() => {
  for (const model of ['small', 'local-hash']) restoreModel(harness, model)
})
afterAll(() => harness.close())

const everyFile = () => ids.map((id, at) => `${id}: ${numberedText(at)}`)

async function expectFound(...more: string[]): Promise<void> {
  const found = await harness.found(name, 'common')
  expect(found.toSorted()).toEqual([...everyFile(), ...more].toSorted())
}

/** Whether an index was dropped completely. */
async function isGone(indexId: number): Promise<boolean> {
  const rows = await harness.database.drizzle.execute(sql`
    select 1 from embedding_index where id = ${indexId}
    union all select 1 from file_index where index_id = ${indexId}
    union all select 1 from pg_class where relname = ${`chunk_${indexId}`}`)
  return rows.length === 0
}

function upload(text: string): Promise<string> {
  return harness.upload(`${name}-${text}.txt`, text, [name])
}

test('a file added during a reindex survives the cancellation, and the target is dropped', async () => {
  const gate = gateModel(harness, 'small', ({ text }) => text.includes('number'))
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const early = `${await upload('common early')}: common early`
  await harness.settled()
  const back = gateModel(harness, 'local-hash', ({ text }) => text.includes('early'))
  const cancelling = await harness.act(id, 'cancel')
  expect(cancelling.status).toBe('cancelling')
  // During the move back, new files go to the source directly and all files are found.
  const late = `${await upload('common late')}: common late`
  await harness.settled()
  await expectFound(early, late)
  expect((await harness.act(id, 'cancel')).status).toBe('cancelling')
  back.open()
  const { counters, targetIndexId } = await harness.until(id, 'cancelled')
  gate.open()
  expect(counters).toMatchObject({ total: 4, completed: 0, failed: 0, skipped: 4 })
  await expectFound(early, late)
  expect(await isGone(targetIndexId)).toBe(true)
  expect((await harness.act(id, 'cancel')).status).toBe('cancelled')
  expect((await harness.collections.find(ann, name)).index.model).toBe('local-hash')
})

test('a file changed during a reindex is found by its new content after a cancellation', async () => {
  const gate = gateModel(harness, 'small', ({ text }) => text.includes('number'))
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const [first = ''] = ids
  await harness.replace(first, 'common words anew')
  await harness.settled()
  await harness.act(id, 'cancel')
  expect(await harness.found(name, 'anew', 'keyword')).toHaveLength(1)
  await harness.until(id, 'cancelled')
  gate.open()
  expect(await harness.found(name, 'anew', 'keyword')).toEqual([`${first}: common words anew`])
  expect(await harness.found(name, 'number0', 'keyword')).toEqual([])
})

test('files that fail in the source stop a cancellation until accepted', async () => {
  const gate = gateModel(harness, 'small', ({ text }) => text.includes('number'))
  breakModel(harness, 'local-hash', ({ text }) => (text.includes('odd') ? refusal() : null))
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  const odd = [`${await upload('common odd one')}: common odd one`]
  odd.push(`${await upload('common odd two')}: common odd two`)
  await harness.settled()
  await harness.act(id, 'cancel')
  await eventually('it says what is in its way', async () =>
    Boolean((await harness.reindexes.find(id)).lastError?.includes('failed in the source: 2.')),
  )
  await expectFound(...odd)
  const page = { limit: 10, order: 'asc', after: null, before: null } as const
  expect((await harness.reindexes.failures(id, page)).items).toHaveLength(2)
  breakModel(harness, 'local-hash', ({ text }) => (text.includes('two') ? refusal() : null))
  await harness.act(id, 'retry')
  await eventually('one of them came back', async () =>
    Boolean((await harness.reindexes.find(id)).lastError?.includes('failed in the source: 1.')),
  )
  await expectFound(...odd)
  await harness.act(id, 'accept')
  await harness.until(id, 'cancelled')
  gate.open()
  await expectFound(...odd.slice(0, 1))
})

test('a revert moves back files added and changed since the completion', async () => {
  const id = await harness.startReindex('small', [name])
  const { sourceIndexId, targetIndexId } = await harness.until(id, 'completed')
  const since = `${await upload('common since')}: common since`
  const [first = ''] = ids
  await harness.replace(first, 'common words anew')
  await harness.settled()
  const gate = gateModel(harness, 'local-hash')
  expect((await harness.act(id, 'revert')).status).toBe('reverting')
  expect(await harness.found(name, 'common')).toHaveLength(5)
  expect(await harness.found(name, 'anew', 'keyword')).toHaveLength(1)
  gate.open()
  const { counters } = await harness.until(id, 'reverted')
  expect(counters).toMatchObject({ total: 4, completed: 4, failed: 0, skipped: 0 })
  expect(await harness.found(name, 'common')).toHaveLength(5)
  expect(await harness.found(name, 'anew', 'keyword')).toEqual([`${first}: common words anew`])
  expect(await harness.found(name, 'since', 'keyword')).toEqual([since])
  expect(await isGone(targetIndexId)).toBe(true)
  expect((await harness.collections.find(ann, name)).index.id).toBe(sourceIndexId)
  expect((await harness.act(id, 'revert')).status).toBe('reverted')
})

test('a revert keeps files of other collections in the target', async () => {
  const id = await harness.startReindex('small', [name])
  const { targetIndexId } = await harness.until(id, 'completed')
  const other = await harness.createFilled(`other${collections}`, 1)
  await harness.until(await harness.startReindex('small', [`other${collections}`]), 'completed')
  const params = { ...plain, name: `third${collections}`, embeddingModel: 'small' }
  await harness.collections.create(annContext(), params)
  const third = await harness.upload(`${name}-third.txt`, 'common third', [params.name])
  await harness.settled()
  await harness.act(id, 'revert')
  await harness.until(id, 'reverted')
  await expectFound()
  expect(await harness.found(params.name, 'common')).toEqual([`${third}: common third`])
  expect(await harness.found(`other${collections}`, 'common')).toHaveLength(other.length)
  const rows = await harness.database.drizzle.execute(sql`
    select 1 from file_index where index_id = ${targetIndexId}
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

test('collections that moved to a third index cannot be reverted to the first', async () => {
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'completed')
  const gate = gateModel(harness, 'large')
  const next = await harness.startReindex('large', [name])
  await harness.until(next, 'running')
  await expect(harness.act(id, 'revert')).rejects.toMatchObject({
    wireCode: 'reindex_running',
  })
  gate.open()
  await harness.until(next, 'completed')
  restoreModel(harness, 'large')
  await expect(harness.act(id, 'revert')).rejects.toMatchObject({
    wireCode: 'reindex_superseded',
  })
  await expectFound()
})

test('a reindex cancelled before its start leaves nothing behind', async () => {
  const idle = await startReindexHarness()
  await idle.collection('docs')
  const id = await idle.startReindex('small')
  const { targetIndexId } = await idle.act(id, 'cancel')
  await idle.start()
  const cancelled = await idle.until(id, 'cancelled')
  expect(cancelled.counters).toMatchObject({ total: 0, completed: 0, skipped: 0 })
  const rows = await idle.database.drizzle.execute(sql`
    select 1 from embedding_index where id = ${targetIndexId}`)
  expect(rows).toHaveLength(0)
  await idle.close()
})

test('the source is dropped after the retention, and a revert is refused', async () => {
  const brief = await startReindexHarness({ warmHours: 1 / 36_000 })
  await brief.start()
  const [fileId] = await brief.createFilled('docs', 1)
  const id = await brief.startReindex('small')
  const { sourceIndexId } = await brief.until(id, 'completed')
  await eventually('the source is gone', async () => {
    const rows = await brief.database.drizzle.execute(sql`
      select 1 from embedding_index where id = ${sourceIndexId}
      union all select 1 from pg_class where relname = ${`chunk_${sourceIndexId}`}`)
    return rows.length === 0
  })
  await expect(brief.act(id, 'revert')).rejects.toMatchObject({
    status: 410,
    wireCode: 'source_dropped',
  })
  expect(await brief.found('docs', 'common')).toEqual([`${fileId}: ${numberedText(0)}`])
  await brief.close()
})
