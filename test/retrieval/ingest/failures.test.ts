import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { Embedder } from '#embedding/embedder.ts'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { AppError } from '#lib/errors.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { ann, type FileState, type IngestHarness, startIngestHarness } from './ingest-harness.ts'

let database: TestDatabase
let harness: IngestHarness

beforeAll(async () => {
  database = await openTestDatabase()
  harness = await startIngestHarness(database, database.place.dataFolder)
})
beforeEach(() => harness.embedders.set('local-hash', good))
afterAll(async () => {
  await harness.close()
  await database.close()
})

const good = createLocalHashEmbedder()
const text = (word: string) => Array.from({ length: 40 }, () => `All about ${word}.`).join(' ')

/** Replaces the embedding model of the collection. */
function embedAs(embed: Embedder['embed']): void {
  harness.embedders.set('local-hash', { model: 'local-hash', embed })
}

/** Blocks the embedding call until it is opened. */
function gate() {
  const called = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  embedAs(async (texts, options) => {
    called.resolve()
    await open.promise
    return good.embed(texts, options)
  })
  return { called: called.promise, open: open.resolve, fail: open.reject }
}

async function until(id: string, wanted: Partial<FileState>): Promise<void> {
  await eventually(`the file is ${JSON.stringify(wanted)}`, async () => {
    const state: Record<string, unknown> = await harness.state(id)
    return Object.entries(wanted).every(([name, value]) => state[name] === value)
  })
}

/** Simulates failed attempts whose retry is due. */
async function skipPause(attempts = 1): Promise<void> {
  await database.drizzle.execute(sql`
    update job set attempts = ${attempts}, run_at = now() where queue = 'ingest'`)
}

describe('a model', () => {
  test('with Retry-After delays the retry, and the error is visible', async () => {
    embedAs(async () => {
      throw new AppError('rate_limit_exceeded', 'Too many requests.', { retryAfterS: 600 })
    })
    const id = await harness.upload('a.txt', text('waiting'))
    await until(id, { stage: 'waiting', error_code: 'rate_limit_exceeded' })
    expect(await harness.state(id)).toMatchObject({
      state: 'pending',
      error_message: 'Too many requests.',
    })
    await eventually('the job waits', async () => {
      const [row] = await database.drizzle.execute<{ pause_s: number }>(
        "select extract(epoch from run_at - now())::float8 as pause_s from job where queue = 'ingest'",
      )
      return (row?.pause_s ?? 0) > 500
    })
    harness.embedders.set('local-hash', good)
    await skipPause()
    await harness.settled()
    expect(await harness.state(id)).toMatchObject({ state: 'done', error_code: null, attempts: 2 })
  })

  test('that stays unreachable fails the file after the last attempt; reprocessing starts over', async () => {
    embedAs(async () => {
      throw new AppError('upstream_unreachable', 'The upstream cannot be reached.')
    })
    const id = await harness.upload('a.txt', text('absence'))
    await until(id, { error_code: 'upstream_unreachable' })
    await eventually('the job waits', async () => {
      const rows = await database.drizzle.execute(
        "select 1 from job where queue = 'ingest' and locked_by is null",
      )
      return rows.length === 1
    })
    await skipPause(14)
    await harness.settled()
    expect(await harness.state(id)).toMatchObject({
      state: 'failed',
      error_code: 'upstream_unreachable',
    })
    harness.embedders.set('local-hash', good)
    await harness.ingest.reprocess(id)
    await harness.settled()
    expect(await harness.state(id)).toMatchObject({ state: 'done', error_code: null })
  })

  test('that is missing is retried', async () => {
    harness.embedders.delete('local-hash')
    const id = await harness.upload('a.txt', text('coming back'))
    await until(id, { stage: 'waiting', error_code: 'model_not_found' })
    harness.embedders.set('local-hash', good)
    await skipPause()
    await harness.settled()
    expect(await harness.state(id)).toMatchObject({ state: 'done' })
  })

  test('with invalid responses is not retried', async () => {
    const answers: Record<string, Embedder['embed']> = {
      wrong_dimensions: (texts, options) => good.embed(texts, { ...options, dims: 12 }),
      upstream_invalid_answer: async (texts, options) => {
        const { vectors, ...rest } = await good.embed(texts, options)
        return { vectors: vectors.slice(1), ...rest }
      },
    }
    for (const [code, embed] of Object.entries(answers)) {
      let called = 0
      embedAs((...given) => {
        called += 1
        return embed(...given)
      })
      const id = await harness.upload('a.txt', text(code))
      await harness.settled()
      expect(await harness.state(id)).toMatchObject({
        state: 'failed',
        error_code: code,
        chunks: 0,
      })
      expect(await harness.passages(id)).toEqual([])
      expect(called).toBe(1)
    }
  })

  test('with unexpected errors reports an internal error without details', async () => {
    embedAs(async () => {
      throw new Error('password hunter2 at 10.0.0.1')
    })
    const id = await harness.upload('a.txt', text('surprises'))
    await until(id, { stage: 'waiting', error_code: 'internal_error' })
    expect((await harness.state(id)).error_message).not.toContain('hunter2')
    harness.embedders.set('local-hash', good)
    await skipPause()
    await harness.settled()
  })
})

describe('while a file is being ingested', () => {
  test('its stage is visible, and new content replaces the old', async () => {
    const { called, open } = gate()
    const id = await harness.upload('a.txt', text('old'))
    await called
    expect(await harness.state(id)).toMatchObject({ state: 'pending', stage: 'embedding' })
    await harness.replace(id, 'The new content.')
    open()
    await harness.settled()
    expect(await harness.passages(id)).toMatchObject([{ ordinal: 0, text: 'The new content.' }])
    expect(await harness.state(id)).toMatchObject({ state: 'done', chunks: 1 })
  })

  test('a final failure of the old content does not fail the new one', async () => {
    embedAs(async () => {
      throw new AppError('upstream_unreachable', 'The upstream cannot be reached.')
    })
    const id = await harness.upload('a.txt', text('old'))
    await eventually('the job waits', async () => {
      const rows = await database.drizzle.execute(
        "select 1 from job where queue = 'ingest' and locked_by is null and last_error is not null",
      )
      return rows.length === 1
    })
    const { called, fail } = gate()
    await skipPause(14)
    await called
    await harness.replace(id, 'The new content.')
    harness.embedders.set('local-hash', good)
    fail(new AppError('upstream_unreachable', 'The upstream cannot be reached.'))
    await harness.settled()
    expect(await harness.state(id)).toMatchObject({ state: 'done', error_code: null })
    expect(await harness.passages(id)).toMatchObject([{ text: 'The new content.' }])
  })

  test('its deletion leaves nothing behind', async () => {
    const { called, open } = gate()
    const id = await harness.upload('a.txt', text('ghosts'))
    await called
    await harness.files.deleteFile(ann, { id, ifVersion: null })
    open()
    await harness.settled()
    expect(await harness.passages(id)).toEqual([])
  })

  test('a stopped process hands the job to the next one', async () => {
    const { called, open } = gate()
    const id = await harness.upload('a.txt', text('slowly'))
    await called
    embedAs(good.embed)
    const closing = harness.close()
    open()
    await closing
    expect(await harness.state(id)).toMatchObject({ state: 'pending' })
    expect(await harness.passages(id)).toEqual([])
    harness = await startIngestHarness(database, database.place.dataFolder)
    await harness.settled()
    expect(await harness.state(id)).toMatchObject({ state: 'done' })
    expect(await harness.passages(id)).not.toEqual([])
  })
})
