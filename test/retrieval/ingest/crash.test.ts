import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { fileURLToPath } from 'node:url'
import { sql } from 'drizzle-orm'
import { openDatabase } from '#db/client.ts'
import { createTestPlace, prepareDatabases, type TestPlace } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** A process killed at any step causes no loss and no duplicates. */

const program = fileURLToPath(new URL('./ingest-process.ts', import.meta.url))
const text = Array.from({ length: 60 }, (_, at) => `Sentence ${at} is to be kept.`).join(' ')
const steps = [
  'before the work',
  'before reading',
  'after reading',
  'before embedding',
  'after embedding',
  'before the commit',
  'after the work',
]

let place: TestPlace
beforeAll(prepareDatabases)
beforeEach(async () => {
  place = await createTestPlace()
})
afterAll(async () => {
  for (const left of places) await left.remove()
})
const places = new Set<TestPlace>()

function start(step: string, ...upload: string[]) {
  places.add(place)
  const child = Bun.spawn(
    [process.execPath, program, place.dataFolder, place.databaseUrl ?? '', step, ...upload],
    { stdout: 'pipe', stderr: 'inherit' },
  )
  const heard = async (word: string) => {
    const { value } = await child.stdout.getReader().read()
    expect(new TextDecoder().decode(value)).toBe(`${word}\n`)
  }
  const kill = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  return { heard, kill }
}

for (const step of steps) {
  test(`a process that is killed ${step} loses nothing and leaves nothing twice`, async () => {
    const first = start(step, 'kept.txt', text)
    await first.heard('here')
    await first.kill()
    const second = start('')
    await second.heard('done')
    await second.kill()
    const { drizzle, close } = await openDatabase({ ...place, connectionsMax: 1, log: quietLog })
    const passages = await drizzle.execute<{ ordinal: number; start: number; end: number }>(sql`
      select ordinal, start_char as start, end_char as end from chunk_1 order by ordinal`)
    expect(passages.map(({ ordinal }) => ordinal)).toEqual([...passages.keys()])
    expect(passages[0]?.start).toBe(0)
    expect(passages.at(-1)?.end).toBe(text.length)
    for (const [at, passage] of passages.entries()) {
      expect(passage.start).toBeLessThanOrEqual((passages[at - 1]?.end ?? -1) + 1)
    }
    expect([...(await drizzle.execute('select state, chunks from file_index'))]).toEqual([
      { state: 'done', chunks: passages.length },
    ])
    expect([...(await drizzle.execute('select text from extracted_text'))]).toEqual([{ text }])
    expect([...(await drizzle.execute("select 1 from job where queue = 'ingest'"))]).toEqual([])
    await close()
  })
}
