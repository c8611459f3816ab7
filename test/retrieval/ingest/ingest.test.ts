import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { createIngestStore } from '#retrieval/ingest/store.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { makeDocx, makePdf } from '#test/support/documents.ts'
import { ann, type IngestWorld, startIngestWorld } from './ingest-world.ts'

let database: TestDatabase
let world: IngestWorld
let extractions = 0

beforeAll(async () => {
  database = await openTestDatabase()
  world = await startIngestWorld(database, database.place.dataFolder, {
    around: (deps) => ({
      ...deps,
      extraction: {
        ...deps.extraction,
        extract(...given) {
          extractions += 1
          return deps.extraction.extract(...given)
        },
      },
    }),
  })
})
afterEach(() => {
  extractions = 0
})
afterAll(async () => {
  await world.close()
  await database.close()
})

const long = (word: string) =>
  Array.from({ length: 60 }, (_, at) => `Sentence ${at} is about ${word}.`).join(' ')

describe('a file', () => {
  test('of any readable kind comes into its index, with pages and places', async () => {
    const pdf = await world.upload(
      'a.pdf',
      makePdf([['On the first page'], ['On the second page']]),
    )
    const docx = await world.upload('a.docx', makeDocx(['# Title', 'A paragraph.']))
    const text = await world.upload('a.txt', long('herons'))
    await world.settled()
    expect(await world.state(pdf)).toEqual({
      state: 'done',
      stage: 'indexing',
      chunks: 1,
      attempts: 1,
      error_code: null,
      error_message: null,
    })
    expect(await world.passages(pdf)).toEqual([
      {
        ordinal: 0,
        page: 1,
        start_char: 0,
        end_char: 37,
        text: 'On the first page\n\nOn the second page',
      },
    ])
    expect(await world.passages(docx)).toMatchObject([{ text: '# Title\n\nA paragraph.' }])
    const passages = await world.passages(text)
    expect(passages.length).toBeGreaterThan(3)
    expect((await world.state(text)).chunks).toBe(passages.length)
    for (const passage of passages) {
      expect(passage.text).toBe(long('herons').slice(passage.start_char, passage.end_char))
    }
  })

  test('without text is left out, one that cannot be read fails, and both say why', async () => {
    const ids = {
      empty: await world.upload('empty.txt', ''),
      pictures: await world.upload('pictures.pdf', makePdf([[]], { picture: true })),
      binary: await world.upload('a.bin', new Uint8Array(1_000)),
      locked: await world.upload('locked.pdf', makePdf([['x']], { locked: true })),
      damaged: await world.upload('a.docx', makeDocx(['x']).subarray(0, 300)),
    }
    await world.settled()
    const said = async (id: string) => {
      const { state, error_code: code } = await world.state(id)
      return [state, code]
    }
    expect(await said(ids.empty)).toEqual(['skipped', 'no_text'])
    expect(await said(ids.pictures)).toEqual(['skipped', 'no_text'])
    expect(await said(ids.binary)).toEqual(['skipped', 'unsupported_file'])
    expect(await said(ids.locked)).toEqual(['failed', 'encrypted'])
    expect(await said(ids.damaged)).toEqual(['failed', 'invalid_file'])
    expect((await world.state(ids.locked)).error_message).toBe(
      'The file is protected by a password.',
    )
  })

  test('with the content of another is not read again', async () => {
    const one = await world.upload('one.txt', long('owls'))
    await world.settled()
    const two = await world.upload('two.txt', long('owls'))
    await world.settled()
    expect(extractions).toBe(1)
    expect(await world.passages(two)).toEqual([...(await world.passages(one))])
    // What its name says of it may make another text of it.
    const html = await world.upload('three.html', long('owls'))
    await world.settled()
    expect(extractions).toBe(2)
    expect(await world.state(html)).toMatchObject({ state: 'done' })
  })

  test('that is deleted before its turn leaves nothing', async () => {
    const id = await world.upload('gone.txt', long('ghosts'))
    await world.files.deleteFile(ann, { id, ifVersion: null })
    await world.settled()
    expect(await world.passages(id)).toEqual([])
  })

  test('with a new content has the passages of that alone', async () => {
    const id = await world.upload('a.txt', long('before'))
    await world.settled()
    await world.replace(id, 'About something else.')
    await world.settled()
    expect(await world.passages(id)).toMatchObject([{ text: 'About something else.' }])
    await world.replace(id, new Uint8Array(1_000))
    await world.settled()
    expect(await world.passages(id)).toEqual([])
    expect(await world.state(id)).toMatchObject({ state: 'skipped', chunks: 0 })
    await world.replace(id, 'And back again.')
    await world.settled()
    expect(await world.passages(id)).toHaveLength(1)
    expect(await world.state(id)).toMatchObject({ state: 'done', error_code: null })
  })
})

describe('reprocessing', () => {
  test('reads a file from its content on, and changes nothing where nothing has changed', async () => {
    const id = await world.upload('again.txt', long('again'))
    await world.settled()
    const before = await world.passages(id)
    expect(await world.ingest.reprocess(id)).toBe(1)
    await world.settled()
    expect(extractions).toBe(2)
    expect(await world.passages(id)).toEqual([...before])
    expect(await world.state(id)).toMatchObject({ state: 'done', attempts: 1 })
  })

  test('is refused while the file is being processed', async () => {
    const id = await world.upload('busy.txt', long('busy'))
    await world.settled()
    await world.ingest.reprocess(id)
    await expect(world.ingest.reprocess(id)).rejects.toMatchObject({
      kind: 'conflict',
      wireCode: 'already_processing',
    })
    await world.settled()
  })

  test('of a file in no collection has nothing to do', async () => {
    expect(await world.ingest.reprocess(crypto.randomUUID())).toBe(0)
  })
})

test('a text is forgotten when no file has its content any more', async () => {
  const store = createIngestStore(database, { now: () => new Date() })
  const id = await world.upload('forgotten.txt', long('forgetting'))
  await world.settled()
  const kept = async () =>
    database.drizzle.execute(sql`select 1 from extracted_text where text like '%forgetting%'`)
  expect(await kept()).toHaveLength(1)
  await store.deleteUnusedTexts()
  expect(await kept()).toHaveLength(1)
  await world.files.deleteFile(ann, { id, ifVersion: null })
  await store.deleteUnusedTexts()
  expect(await kept()).toHaveLength(0)
})
