import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { Embedder } from '#embedding/embedder.ts'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { AppError } from '#lib/errors.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { ann, type FileState, type IngestWorld, startIngestWorld } from './ingest-world.ts'

let database: TestDatabase
let world: IngestWorld

beforeAll(async () => {
  database = await openTestDatabase()
  world = await startIngestWorld(database, database.place.dataFolder)
})
beforeEach(() => world.embedders.set('local-hash', good))
afterAll(async () => {
  await world.close()
  await database.close()
})

const good = createLocalHashEmbedder()
const text = (word: string) => Array.from({ length: 40 }, () => `All about ${word}.`).join(' ')

/** The model of the collection, behaving so. */
function embedAs(embed: Embedder['embed']): void {
  world.embedders.set('local-hash', { model: 'local-hash', embed })
}

/** The model asked for vectors, and held there. */
function gate() {
  const asked = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  embedAs(async (texts, options) => {
    asked.resolve()
    await open.promise
    return good.embed(texts, options)
  })
  return { asked: asked.promise, open: open.resolve, fail: open.reject }
}

async function until(id: string, wanted: Partial<FileState>): Promise<void> {
  await eventually(`the file is ${JSON.stringify(wanted)}`, async () => {
    const state: Record<string, unknown> = await world.state(id)
    return Object.entries(wanted).every(([name, value]) => state[name] === value)
  })
}

/** As if so many tries had failed, and the pause after the last was over. */
async function skipPause(attempts = 1): Promise<void> {
  await database.drizzle.execute(sql`
    update job set attempts = ${attempts}, run_at = now() where queue = 'ingest'`)
}

describe('a model', () => {
  test('that asks to wait is left alone for so long, and whoever looks sees why', async () => {
    embedAs(async () => {
      throw new AppError('rate_limit_exceeded', 'Too many requests.', { retryAfterS: 600 })
    })
    const id = await world.upload('a.txt', text('waiting'))
    await until(id, { stage: 'waiting', error_code: 'rate_limit_exceeded' })
    expect(await world.state(id)).toMatchObject({
      state: 'pending',
      error_message: 'Too many requests.',
    })
    await eventually('the job waits', async () => {
      const [row] = await database.drizzle.execute<{ pause_s: number }>(
        "select extract(epoch from run_at - now())::float8 as pause_s from job where queue = 'ingest'",
      )
      return (row?.pause_s ?? 0) > 500
    })
    world.embedders.set('local-hash', good)
    await skipPause()
    await world.settled()
    expect(await world.state(id)).toMatchObject({ state: 'done', error_code: null, attempts: 2 })
  })

  test('that stays away is given up in the end, and reprocessing begins anew', async () => {
    embedAs(async () => {
      throw new AppError('upstream_unreachable', 'The upstream cannot be reached.')
    })
    const id = await world.upload('a.txt', text('absence'))
    await until(id, { error_code: 'upstream_unreachable' })
    await eventually('the job waits', async () => {
      const rows = await database.drizzle.execute(
        "select 1 from job where queue = 'ingest' and locked_by is null",
      )
      return rows.length === 1
    })
    await skipPause(14)
    await world.settled()
    expect(await world.state(id)).toMatchObject({
      state: 'failed',
      error_code: 'upstream_unreachable',
    })
    world.embedders.set('local-hash', good)
    await world.ingest.reprocess(id)
    await world.settled()
    expect(await world.state(id)).toMatchObject({ state: 'done', error_code: null })
  })

  test('that is not there may come back', async () => {
    world.embedders.delete('local-hash')
    const id = await world.upload('a.txt', text('coming back'))
    await until(id, { stage: 'waiting', error_code: 'model_not_found' })
    world.embedders.set('local-hash', good)
    await skipPause()
    await world.settled()
    expect(await world.state(id)).toMatchObject({ state: 'done' })
  })

  test('whose answers are wrong is not asked again', async () => {
    const answers: Record<string, Embedder['embed']> = {
      wrong_dimensions: (texts, options) => good.embed(texts, { ...options, dims: 12 }),
      upstream_invalid_answer: async (texts, options) => {
        const { vectors, ...rest } = await good.embed(texts, options)
        return { vectors: vectors.slice(1), ...rest }
      },
    }
    for (const [code, embed] of Object.entries(answers)) {
      let asked = 0
      embedAs((...given) => {
        asked += 1
        return embed(...given)
      })
      const id = await world.upload('a.txt', text(code))
      await world.settled()
      expect(await world.state(id)).toMatchObject({ state: 'failed', error_code: code, chunks: 0 })
      expect(await world.passages(id)).toEqual([])
      expect(asked).toBe(1)
    }
  })

  test('that fails in ways nobody foresaw is told of without a word of them', async () => {
    embedAs(async () => {
      throw new Error('password hunter2 at 10.0.0.1')
    })
    const id = await world.upload('a.txt', text('surprises'))
    await until(id, { stage: 'waiting', error_code: 'internal_error' })
    expect((await world.state(id)).error_message).not.toContain('hunter2')
    world.embedders.set('local-hash', good)
    await skipPause()
    await world.settled()
  })
})

describe('while a file is on its way', () => {
  test('its stage is told, and a new content takes the place of the old', async () => {
    const { asked, open } = gate()
    const id = await world.upload('a.txt', text('old'))
    await asked
    expect(await world.state(id)).toMatchObject({ state: 'pending', stage: 'embedding' })
    await world.replace(id, 'The new content.')
    open()
    await world.settled()
    expect(await world.passages(id)).toMatchObject([{ ordinal: 0, text: 'The new content.' }])
    expect(await world.state(id)).toMatchObject({ state: 'done', chunks: 1 })
  })

  test('a last failure of its old content says nothing of the new', async () => {
    embedAs(async () => {
      throw new AppError('upstream_unreachable', 'The upstream cannot be reached.')
    })
    const id = await world.upload('a.txt', text('old'))
    await eventually('the job waits', async () => {
      const rows = await database.drizzle.execute(
        "select 1 from job where queue = 'ingest' and locked_by is null and last_error is not null",
      )
      return rows.length === 1
    })
    const { asked, fail } = gate()
    await skipPause(14)
    await asked
    await world.replace(id, 'The new content.')
    world.embedders.set('local-hash', good)
    fail(new AppError('upstream_unreachable', 'The upstream cannot be reached.'))
    await world.settled()
    expect(await world.state(id)).toMatchObject({ state: 'done', error_code: null })
    expect(await world.passages(id)).toMatchObject([{ text: 'The new content.' }])
  })

  test('it may be deleted, and nothing of it is left', async () => {
    const { asked, open } = gate()
    const id = await world.upload('a.txt', text('ghosts'))
    await asked
    await world.files.deleteFile(ann, { id, ifVersion: null })
    open()
    await world.settled()
    expect(await world.passages(id)).toEqual([])
  })

  test('the process may stop, and the next one does it', async () => {
    const { asked, open } = gate()
    const id = await world.upload('a.txt', text('patience'))
    await asked
    embedAs(good.embed)
    const closing = world.close()
    open()
    await closing
    expect(await world.state(id)).toMatchObject({ state: 'pending' })
    expect(await world.passages(id)).toEqual([])
    world = await startIngestWorld(database, database.place.dataFolder)
    await world.settled()
    expect(await world.state(id)).toMatchObject({ state: 'done' })
    expect(await world.passages(id)).not.toEqual([])
  })
})
