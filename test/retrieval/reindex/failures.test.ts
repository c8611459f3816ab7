import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { AppError } from '#lib/errors.ts'
import { eventually } from '#test/support/eventually.ts'
import { ann, type ReindexWorld, startReindexWorld, unreadable } from './reindex-world.ts'
import { breakModel, changePassages, gateModel, mendModel, refusal } from './scripted-models.ts'

/** Files that fail, pauses, and what becomes of the rest. */

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
afterEach(() => mendModel(world, 'small'))
afterAll(() => world.close())

const page = { limit: 10, order: 'asc', after: null, before: null } as const

const failsFor = (word: string) =>
  breakModel(world, 'small', ({ text }) => (text.includes(word) ? refusal() : null))

test('files that fail hold the end, are found all the same, and may be tried again', async () => {
  failsFor('number2')
  const id = await world.begin('small', [name])
  const held = await world.until(id, 'needs_attention')
  expect(held.counters).toMatchObject({ completed: 3, failed: 1, skipped: 0, total: 4 })
  expect(held.lastError).toContain('1')
  expect((await world.reindexes.failures(id, page)).items).toEqual([
    {
      fileId: ids[2] ?? '',
      filename: `${name}-2.txt`,
      attempts: 1,
      code: 'invalid_request',
      message: 'The model does not take this text.',
    },
  ])
  expect(await world.found(name, 'common')).toHaveLength(4)
  mendModel(world, 'small')
  await world.reindexes.act(id, 'retry')
  const { counters, lastError } = await world.until(id, 'completed')
  expect(counters).toMatchObject({ completed: 4, failed: 0 })
  expect(lastError).toBeNull()
  expect((await world.reindexes.failures(id, page)).items).toEqual([])
})

test('whoever accepts failures has the end, and may still try the files again', async () => {
  failsFor('number1')
  const id = await world.begin('small', [name])
  await world.until(id, 'needs_attention')
  await world.reindexes.act(id, 'accept')
  const { counters } = await world.until(id, 'completed')
  expect(counters).toMatchObject({ completed: 3, failed: 1, skipped: 0, total: 4 })
  expect(await world.found(name, 'common')).toHaveLength(3)
  const failed = await world.collections.members.find(ann, name, ids[1] ?? '')
  expect(failed).toMatchObject({ state: 'failed', error: { code: 'invalid_request' } })
  expect((await world.reindexes.failures(id, page)).items).toMatchObject([{ fileId: ids[1] }])
  mendModel(world, 'small')
  await world.reindexes.act(id, 'retry')
  await eventually('it is found again', async () => {
    return (await world.found(name, 'common')).length === 4
  })
})

test('failures that were accepted beforehand hold nothing up', async () => {
  const { promise: isAccepted, resolve: accept } = Promise.withResolvers<void>()
  changePassages(world, 'small', async (text) => {
    await isAccepted
    if (text.includes('number1')) throw refusal()
  })
  const id = await world.begin('small', [name])
  await world.until(id, 'running')
  await world.reindexes.act(id, 'accept')
  accept()
  expect((await world.until(id, 'completed')).counters).toMatchObject({ failed: 1, completed: 3 })
})

test('a file without a text is skipped, and one that cannot be read has failed', async () => {
  await world.upload(`${name}-empty.txt`, '', [name])
  const broken = await world.upload(`${name}-broken.txt`, unreadable, [name])
  await world.settled()
  const id = await world.begin('small', [name])
  const { counters } = await world.until(id, 'needs_attention')
  expect(counters).toMatchObject({ completed: 4, failed: 1, skipped: 1, total: 6 })
  const [failure] = (await world.reindexes.failures(id, page)).items
  expect(failure?.fileId).toBe(broken)
  await world.reindexes.act(id, 'cancel')
  await world.until(id, 'cancelled')
  expect(await world.found(name, 'common')).toHaveLength(4)
})

test('a pause begins no further file, however many are waiting, and uploads go on', async () => {
  const embedded: string[] = []
  const gate = gateModel(world, 'small', ({ text }) => {
    embedded.push(text)
    return text.includes('number')
  })
  const id = await world.begin('small', [name])
  await eventually('the first files are with the model', () => embedded.length >= 2)
  expect((await world.reindexes.act(id, 'pause')).status).toBe('paused')
  expect((await world.reindexes.act(id, 'pause')).status).toBe('paused')
  gate.open()
  await eventually('what was handed out has been laid down', async () => {
    const rows = await world.database.drizzle.execute(sql`
      select 1 from job where queue = 'reindex-file'`)
    return rows.length === 0
  })
  const before = embedded.length
  await world.upload(`${name}-new.txt`, 'common upload', [name])
  await world.settled()
  expect(await world.found(name, 'common')).toHaveLength(5)
  expect(embedded.slice(before)).toEqual(['common upload'])
  const { counters } = await world.until(id, 'paused')
  expect(counters.completed + counters.failed).toBeLessThan(4)
  await world.reindexes.act(id, 'resume')
  expect((await world.until(id, 'completed')).counters).toMatchObject({ completed: 4, added: 1 })
})

test('one failure after the other is a pause, and told', async () => {
  const many = await world.filled(`many${collections}`, 24)
  failsFor('number')
  const id = await world.begin('small', [`many${collections}`])
  const paused = await world.until(id, 'paused')
  expect(paused.lastError).toContain('The model does not take this text.')
  expect(paused.counters.failed).toBeGreaterThanOrEqual(20)
  expect(await world.found(`many${collections}`, 'common')).toHaveLength(many.length)
  mendModel(world, 'small')
  await world.reindexes.act(id, 'retry')
  await world.reindexes.act(id, 'resume')
  expect((await world.until(id, 'completed')).counters).toMatchObject({ completed: 24, failed: 0 })
})

test('a model that is away for a moment is waited for', async () => {
  let failures = 2
  breakModel(world, 'small', () =>
    failures-- > 0 ? new AppError('upstream_overloaded', 'Not now.') : null,
  )
  const id = await world.begin('small', [name])
  expect((await world.until(id, 'completed')).counters).toMatchObject({ completed: 4, failed: 0 })
})
