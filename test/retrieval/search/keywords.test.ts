import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type SearchTuning, searchTuning } from '#retrieval/search/hit-store.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import { storeShares } from '#test/support/stored-files.ts'
import { searchPassages, storePassages } from '#test/support/stored-passages.ts'

/**
 * Keyword search in many passages: passages with more keywords come first, regardless of whether rights
 * or passages are evaluated first and of the tier that sufficed.
 */

const seed = 23
const fileCount = 300
const passagesPerFile = 5
const passageWords = 12
const vocabularySize = 30
const queryCount = 25
const dice = createDice(seed)
const owner = crypto.randomUUID()
const reader = crypto.randomUUID()
const files = new Map(
  Array.from({ length: fileCount }, () => [
    Bun.randomUUIDv7() as string,
    Array.from({ length: passagesPerFile }, () => ({
      text: textOf(passageWords),
      vector: new Float32Array(4).fill(1),
    })),
  ]),
)
const rightsFirst = { ...searchTuning, rightsFirstFilesMax: fileCount }
const passagesFirst = { ...searchTuning, rightsFirstFilesMax: 0, candidatesPerHit: 4 }

let database: TestDatabase
beforeAll(async () => {
  database = await openTestDatabase()
  const { collectionId } = await storePassages(database, { ownerId: owner, files })
  const share = { principalType: 'user', principalId: reader, role: 1 } as const
  await storeShares(database, [
    { ...share, resourceType: 'collection', resourceId: collectionId },
    ...[...files.keys()]
      .filter((_, at) => at % 3 === 0)
      .map((resourceId) => ({ ...share, resourceType: 'node' as const, resourceId })),
  ])
})
afterAll(async () => {
  await database.close()
})

test.each([
  ['who owns all', owner],
  ['who may read a third', reader],
])('one %s finds the same by rights first and by passages first', async (_, userId) => {
  for (let at = 0; at < queryCount; at++) {
    const query = textOf(1 + dice.upTo(10))
    const expected = await search(userId, query, rightsFirst)
    expect(await search(userId, query, passagesFirst), query).toEqual(expected)
  }
})

test('passages with more keywords come first', async () => {
  const query = 'word9 word13 word16 word19'
  const found = await search(owner, query, passagesFirst)
  const counts = found.map(({ text }) => {
    const words = new Set(text.split(' '))
    return query.split(' ').filter((word) => words.has(word)).length
  })
  // Below the tier of all but one, frequency counts as well.
  const tiers = counts.map((count) => Math.max(count, 2))
  expect(tiers).toEqual(tiers.toSorted((one, other) => other - one))
  expect(new Set(tiers).size).toBeGreaterThan(1)
})

async function search(userId: string, query: string, tuning: SearchTuning) {
  const results = await searchPassages(database, {
    userId,
    query,
    tuning,
    mode: 'keyword',
    topK: 50,
  })
  return results.map(({ chunk, score, fileId }) => ({
    id: chunk.id,
    score,
    text: files.get(fileId)?.[chunk.index]?.text ?? '',
  }))
}

/** A text of words with a skewed distribution. */
function textOf(words: number): string {
  const any = () => dice.upTo(vocabularySize)
  return Array.from({ length: words }, () => `word${Math.min(any(), any(), any())}`).join(' ')
}
