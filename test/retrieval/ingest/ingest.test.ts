import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { createIngestStore } from '#retrieval/ingest/store.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { makeDocx, makePdf } from '#test/support/documents.ts'
import { ann, type IngestHarness, startIngestHarness } from './ingest-harness.ts'

let database: TestDatabase
let harness: IngestHarness
let extractions = 0

beforeAll(async () => {
  database = await openTestDatabase()
  harness = await startIngestHarness(database, database.place.dataFolder, {
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
  await harness.close()
  await database.close()
})

const long = (word: string) =>
  Array.from({ length: 60 }, (_, at) => `Sentence ${at} is about ${word}.`).join(' ')

describe('a file', () => {
  test('of any supported format is indexed with pages and positions', async () => {
    const pdf = await harness.upload(
      'a.pdf',
      makePdf([['On the first page'], ['On the second page']]),
    )
    const docx = await harness.upload('a.docx', makeDocx(['# Title', 'A paragraph.']))
    const text = await harness.upload('a.txt', long('herons'))
    await harness.settled()
    expect(await harness.state(pdf)).toEqual({
      state: 'done',
      stage: 'indexing',
      chunks: 1,
      attempts: 1,
      error_code: null,
      error_message: null,
      warnings: null,
    })
    expect(await harness.passages(pdf)).toEqual([
      {
        ordinal: 0,
        page: 1,
        start_char: 0,
        end_char: 37,
        text: 'On the first page\n\nOn the second page',
      },
    ])
    expect(await harness.passages(docx)).toMatchObject([{ text: '# Title\n\nA paragraph.' }])
    const passages = await harness.passages(text)
    expect(passages.length).toBeGreaterThan(3)
    expect((await harness.state(text)).chunks).toBe(passages.length)
    for (const passage of passages) {
      expect(passage.text).toBe(long('herons').slice(passage.start_char, passage.end_char))
    }
  })

  test('without text is skipped, an unreadable one fails, both with an error', async () => {
    const ids = {
      empty: await harness.upload('empty.txt', ''),
      pictures: await harness.upload('pictures.pdf', makePdf([[]], { picture: true })),
      binary: await harness.upload('a.trashAndRestore', new Uint8Array(1_000)),
      locked: await harness.upload('locked.pdf', makePdf([['x']], { locked: true })),
      damaged: await harness.upload('a.docx', makeDocx(['x']).subarray(0, 300)),
    }
    await harness.settled()
    const outcomeOf = async (id: string) => {
      const { state, error_code: code } = await harness.state(id)
      return [state, code]
    }
    expect(await outcomeOf(ids.empty)).toEqual(['skipped', 'no_text'])
    expect(await outcomeOf(ids.pictures)).toEqual(['skipped', 'no_text'])
    expect(await outcomeOf(ids.binary)).toEqual(['skipped', 'unsupported_file'])
    expect(await outcomeOf(ids.locked)).toEqual(['failed', 'encrypted'])
    expect(await outcomeOf(ids.damaged)).toEqual(['failed', 'invalid_file'])
    expect((await harness.state(ids.locked)).error_message).toBe(
      'The file is protected by a password.',
    )
  })

  test('has warnings about what its text lacks, also from the cache', async () => {
    const partly = makePdf([['Text on the first page'], []])
    const one = await harness.upload('one.pdf', partly)
    const pictures = await harness.upload('two.pdf', makePdf([[]], { picture: true }))
    await harness.settled()
    const two = await harness.upload('three.pdf', partly)
    await harness.settled()
    const warningsOf = async (id: string) => JSON.parse((await harness.state(id)).warnings ?? '[]')
    const missing = { code: 'pages_without_text', message: '1 page has no text (2).' }
    expect(await warningsOf(one)).toEqual([missing])
    expect(await warningsOf(two)).toEqual([missing])
    expect(await warningsOf(pictures)).toEqual([{ ...missing, message: '1 page has no text (1).' }])
  })

  test('with the content of another file is not extracted again', async () => {
    const one = await harness.upload('one.txt', long('owls'))
    await harness.settled()
    const two = await harness.upload('two.txt', long('owls'))
    await harness.settled()
    expect(extractions).toBe(1)
    expect(await harness.passages(two)).toEqual([...(await harness.passages(one))])
    // The extension selects another extractor.
    const html = await harness.upload('three.html', long('owls'))
    await harness.settled()
    expect(extractions).toBe(2)
    expect(await harness.state(html)).toMatchObject({ state: 'done' })
  })

  test('that is deleted before its ingest leaves no passages', async () => {
    const id = await harness.upload('gone.txt', long('ghosts'))
    await harness.files.deleteFile(ann, { id, ifVersion: null })
    await harness.settled()
    expect(await harness.passages(id)).toEqual([])
  })

  test('with new content has only the new passages', async () => {
    const id = await harness.upload('a.txt', long('before'))
    await harness.settled()
    await harness.replace(id, 'About something else.')
    await harness.settled()
    expect(await harness.passages(id)).toMatchObject([{ text: 'About something else.' }])
    await harness.replace(id, new Uint8Array(1_000))
    await harness.settled()
    expect(await harness.passages(id)).toEqual([])
    expect(await harness.state(id)).toMatchObject({ state: 'skipped', chunks: 0 })
    await harness.replace(id, 'And back again.')
    await harness.settled()
    expect(await harness.passages(id)).toHaveLength(1)
    expect(await harness.state(id)).toMatchObject({ state: 'done', error_code: null })
  })
})

describe('reprocessing', () => {
  test('extracts the content again and keeps unchanged passages', async () => {
    const id = await harness.upload('again.txt', long('again'))
    await harness.settled()
    const before = await harness.passages(id)
    expect(await harness.ingest.reprocess(id)).toBe(1)
    await harness.settled()
    expect(extractions).toBe(2)
    expect(await harness.passages(id)).toEqual([...before])
    expect(await harness.state(id)).toMatchObject({ state: 'done', attempts: 1 })
  })

  test('is refused while the file is being processed', async () => {
    const id = await harness.upload('busy.txt', long('busy'))
    await harness.settled()
    await harness.ingest.reprocess(id)
    await expect(harness.ingest.reprocess(id)).rejects.toMatchObject({
      kind: 'conflict',
      wireCode: 'already_processing',
    })
    await harness.settled()
  })

  test('does nothing for a file in no collection', async () => {
    expect(await harness.ingest.reprocess(crypto.randomUUID())).toBe(0)
  })
})

test('an extracted text is deleted with the last file of its content', async () => {
  const store = createIngestStore(database, { now: () => new Date() })
  const id = await harness.upload('forgotten.txt', long('forgetting'))
  await harness.settled()
  const kept = async () =>
    database.drizzle.execute(sql`select 1 from extracted_text where text like '%forgetting%'`)
  expect(await kept()).toHaveLength(1)
  await store.deleteUnusedTexts()
  expect(await kept()).toHaveLength(1)
  await harness.files.deleteFile(ann, { id, ifVersion: null })
  await store.deleteUnusedTexts()
  expect(await kept()).toHaveLength(0)
})
