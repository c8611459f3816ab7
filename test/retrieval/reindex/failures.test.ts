import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { AppError } from '#lib/errors.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  ann,
  numberedText,
  type ReindexHarness,
  startReindexHarness,
  unreadable,
} from './reindex-harness.ts'
import {
  breakModel,
  gateModel,
  interceptPassages,
  refusal,
  restoreModel,
} from './scripted-models.ts'

/** Failed files and pauses. */

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
afterEach(() => restoreModel(harness, 'small'))
afterAll(() => harness.close())

const page = { limit: 10, order: 'asc', after: null, before: null } as const

const failsFor = (word: string) =>
  breakModel(harness, 'small', ({ text }) => (text.includes(word) ? refusal() : null))

test('failed files stop the completion, stay searchable and can be retried', async () => {
  failsFor('number2')
  const id = await harness.startReindex('small', [name])
  const held = await harness.until(id, 'needs_attention')
  expect(held.counters).toMatchObject({ completed: 3, failed: 1, skipped: 0, total: 4 })
  expect(held.lastError).toContain('1')
  expect((await harness.reindexes.failures(id, page)).items).toEqual([
    {
      file_id: ids[2] ?? '',
      filename: `${name}-2.txt`,
      attempts: 1,
      code: 'invalid_request',
      message: 'The model does not take this text.',
    },
  ])
  expect(await harness.found(name, 'common')).toHaveLength(4)
  restoreModel(harness, 'small')
  await harness.act(id, 'retry')
  const { counters, lastError } = await harness.until(id, 'completed')
  expect(counters).toMatchObject({ completed: 4, failed: 0 })
  expect(lastError).toBeNull()
  expect((await harness.reindexes.failures(id, page)).items).toEqual([])
})

test('accepted failures complete the reindex and can still be retried', async () => {
  failsFor('number1')
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'needs_attention')
  await harness.act(id, 'accept')
  const { counters } = await harness.until(id, 'completed')
  expect(counters).toMatchObject({ completed: 3, failed: 1, skipped: 0, total: 4 })
  expect(await harness.found(name, 'common')).toHaveLength(3)
  const failed = await harness.collections.members.find(ann, name, ids[1] ?? '')
  expect(failed).toMatchObject({ state: 'failed', error: { code: 'invalid_request' } })
  expect((await harness.reindexes.failures(id, page)).items).toMatchObject([{ file_id: ids[1] }])
  restoreModel(harness, 'small')
  await harness.act(id, 'retry')
  await eventually('it is found again', async () => {
    return (await harness.found(name, 'common')).length === 4
  })
})

test('failures accepted in advance do not stop the completion', async () => {
  const { promise: isAccepted, resolve: accept } = Promise.withResolvers<void>()
  interceptPassages(harness, 'small', async (text) => {
    await isAccepted
    if (text.includes('number1')) throw refusal()
  })
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'running')
  await harness.act(id, 'accept')
  accept()
  expect((await harness.until(id, 'completed')).counters).toMatchObject({ failed: 1, completed: 3 })
})

test('a file without text is skipped, an unreadable one fails', async () => {
  await harness.upload(`${name}-empty.txt`, '', [name])
  const broken = await harness.upload(`${name}-broken.txt`, unreadable, [name])
  await harness.settled()
  const id = await harness.startReindex('small', [name])
  const { counters } = await harness.until(id, 'needs_attention')
  expect(counters).toMatchObject({ completed: 4, failed: 1, skipped: 1, total: 6 })
  const [failure] = (await harness.reindexes.failures(id, page)).items
  expect(failure?.file_id).toBe(broken)
  await harness.act(id, 'cancel')
  await harness.until(id, 'cancelled')
  expect(await harness.found(name, 'common')).toHaveLength(4)
})

test('a pause starts no further files, and uploads continue', async () => {
  const embedded: string[] = []
  const gate = gateModel(harness, 'small', ({ text }) => {
    embedded.push(text)
    return text.includes('number')
  })
  const id = await harness.startReindex('small', [name])
  await eventually('the first files are with the model', () => embedded.length >= 2)
  expect((await harness.act(id, 'pause')).status).toBe('paused')
  expect((await harness.act(id, 'pause')).status).toBe('paused')
  gate.open()
  await eventually('what was handed out has been laid down', async () => {
    const rows = await harness.database.drizzle.execute(sql`
      select 1 from job where queue = 'reindex-file'`)
    return rows.length === 0
  })
  const before = embedded.length
  await harness.upload(`${name}-new.txt`, 'common upload', [name])
  await harness.settled()
  expect(await harness.found(name, 'common')).toHaveLength(5)
  expect(embedded.slice(before)).toEqual(['common upload'])
  const { counters } = await harness.until(id, 'paused')
  expect(counters.completed + counters.failed).toBeLessThan(4)
  await harness.act(id, 'resume')
  expect((await harness.until(id, 'completed')).counters).toMatchObject({ completed: 4, added: 1 })
})

test('consecutive failures pause the reindex with an error', async () => {
  const many = await harness.createFilled(`many${collections}`, 24)
  failsFor('number')
  const id = await harness.startReindex('small', [`many${collections}`])
  const paused = await harness.until(id, 'paused')
  expect(paused.lastError).toContain('The model does not take this text.')
  expect(paused.counters.failed).toBeGreaterThanOrEqual(20)
  expect(await harness.found(`many${collections}`, 'common')).toHaveLength(many.length)
  restoreModel(harness, 'small')
  await harness.act(id, 'retry')
  await harness.act(id, 'resume')
  expect((await harness.until(id, 'completed')).counters).toMatchObject({
    completed: 24,
    failed: 0,
  })
})

test('a briefly unreachable model is retried', async () => {
  let failures = 2
  breakModel(harness, 'small', () =>
    failures-- > 0 ? new AppError('upstream_overloaded', 'Not now.') : null,
  )
  const id = await harness.startReindex('small', [name])
  expect((await harness.until(id, 'completed')).counters).toMatchObject({ completed: 4, failed: 0 })
})

test('a file that is replaced during the verification is not reported as missing', async () => {
  const [replaced = ''] = ids
  const newText = numberedText(99)
  let isReplaced = false
  interceptPassages(harness, 'small', async () => {
    if (isReplaced || (await harness.reindexes.find(id)).status !== 'verifying') return
    isReplaced = true
    await harness.replace(replaced, newText)
    await harness.settled()
  })
  const id = await harness.startReindex('small', [name])
  await harness.until(id, 'completed')
  expect(isReplaced).toBe(true)
  expect(await harness.found(name, newText, 'keyword')).toContain(`${replaced}: ${newText}`)
})
