import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { AppError } from '#lib/errors.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { type IngestHarness, startIngestHarness } from './ingest-harness.ts'

/** Long files and slow models: work in small steps that are kept. */

let database: TestDatabase
let harness: IngestHarness
/** Text of each transaction that stores passages. */
const writtenChars: number[] = []

beforeAll(async () => {
  database = await openTestDatabase()
  harness = await startIngestHarness(database, database.place.dataFolder, {
    around: (deps) => ({
      ...deps,
      chunkTables: {
        ...deps.chunkTables,
        replace(...given) {
          writtenChars.push(given[3].reduce((sum, { text }) => sum + text.length, 0))
          return deps.chunkTables.replace(...given)
        },
      },
    }),
  })
})
afterAll(async () => {
  await harness.close()
  await database.close()
})

const sentences = (word: string, count: number) =>
  Array.from({ length: count }, (_, at) => `The ${word} number ${at} is here.`).join(' ')

test('a long file is stored in many transactions, and completely', async () => {
  writtenChars.length = 0
  const id = await harness.upload('long.txt', sentences('entry', 12_000))
  await harness.settled()
  expect(await harness.state(id)).toMatchObject({ state: 'done' })
  expect(writtenChars.length).toBeGreaterThan(5)
  // One passage more than the limit.
  expect(Math.max(...writtenChars)).toBeLessThan(34_000)
  const ordinals = (await harness.passages(id)).map(({ ordinal }) => ordinal)
  expect(ordinals).toEqual(ordinals.map((_, at) => at))
  expect((await harness.state(id)).chunks).toBe(ordinals.length)
})

test('a changed long file keeps nothing of its former content', async () => {
  const id = await harness.upload('changed.txt', sentences('former', 4_000))
  await harness.settled()
  await harness.replace(id, sentences('new', 3_000))
  await harness.settled()
  const passages = await harness.passages(id)
  expect(passages.filter(({ text }) => text.includes('former'))).toEqual([])
  expect(passages.at(-1)?.text).toEndWith('number 2999 is here.')
})

test('vectors that came before a failure are kept, and the reason is visible meanwhile', async () => {
  const good = createLocalHashEmbedder()
  const embedded: string[] = []
  let failsAfter = 3
  harness.embedders.set('local-hash', {
    model: 'local-hash',
    textsMax: () => 2,
    async embed(texts, options) {
      if (failsAfter-- === 0) throw new AppError('upstream_first_event_timeout', 'Too slow.')
      embedded.push(...texts)
      return good.embed(texts, options)
    },
  })
  const id = await harness.upload('slow.txt', sentences('step', 200))
  await eventually('the first attempt failed', async () => {
    const { stage } = await harness.state(id)
    return stage === 'waiting' && failsAfter < 0
  })
  expect(await harness.state(id)).toMatchObject({
    state: 'pending',
    error_code: 'upstream_first_event_timeout',
    error_message: 'Too slow.',
  })
  expect(await harness.passages(id)).toHaveLength(6)
  await database.drizzle.execute(sql`update job set run_at = now() where queue = 'ingest'`)
  await harness.settled()
  const passages = await harness.passages(id)
  expect(embedded).toEqual(passages.map(({ text }) => text))
  expect(await harness.state(id)).toMatchObject({ state: 'done', attempts: 2, error_code: null })
})
