import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { ann, type IngestHarness, startIngestHarness } from './ingest-harness.ts'

let database: TestDatabase
let one: IngestHarness
let other: IngestHarness

beforeAll(async () => {
  database = await openTestDatabase()
  one = await startIngestHarness(database, database.place.dataFolder)
  other = await startIngestHarness(database, database.place.dataFolder)
})
afterAll(async () => {
  await one.close()
  await other.close()
  await database.close()
})

test('two processes ingest concurrently changed, deleted and reprocessed files correctly', async () => {
  const ids = await Promise.all(
    Array.from({ length: 24 }, (_, at) => one.upload(`${at}.txt`, `text ${at % 5} `.repeat(900))),
  )
  const operations = [
    (id: string) => other.files.deleteFile(ann, { id, ifVersion: null }),
    (id: string) => one.replace(id, `new ${id} `.repeat(100)),
    (id: string) => one.ingest.reprocess(id).catch(ifBusy),
  ]
  // Concurrent work causes no errors.
  await Promise.all(ids.map(async (id, at) => operations[at % operations.length]?.(id)))
  await one.settled()
  expect([...(await database.drizzle.execute(states))]).toEqual([{ state: 'done', files: 16 }])
  expect([...(await database.drizzle.execute(wrong))]).toEqual([])
})

const states = 'select state, count(*)::integer as files from file_index group by state'

/** Files whose passages have gaps, a wrong count or other content. */
const wrong = `
  select progress.file_id from file_index progress
  join file on file.node_id = progress.file_id
  left join chunk_1 passage on passage.file_id = progress.file_id
  group by progress.file_id, progress.chunks, progress.sha256, file.sha256
  having count(passage.id) <> progress.chunks or max(passage.ordinal) + 1 <> progress.chunks
    or count(distinct passage.ordinal) <> progress.chunks or progress.sha256 <> file.sha256`

function ifBusy(error: unknown): void {
  expect(error).toMatchObject({ wireCode: 'already_processing' })
}
