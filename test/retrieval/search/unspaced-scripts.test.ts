import { afterAll, beforeAll, expect, test } from 'bun:test'
import { searchTuning } from '#retrieval/search/hit-store.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { searchPassages, storePassages } from '#test/support/stored-passages.ts'

/** Scripts without spaces between words are found by parts of their runs. */

const owner = crypto.randomUUID()
const texts = [
  '本公司员工每年享有十五天带薪年假，未使用的年假可以结转到次年三月。',
  '出差费用应在返回后三十天内报销，需要提供原始发票。',
  '有給休暇は年間二十日で、翌年三月末まで繰り越すことができます。',
  '東京オフィスのセキュリティカードは総務部で受け取ってください。',
  'พนักงานมีสิทธิลาพักร้อนปีละสิบวัน',
  'The parking garage opens at seven.',
]
const vector = new Float32Array(4).fill(1)

let database: TestDatabase
beforeAll(async () => {
  database = await openTestDatabase()
  const files = new Map(
    texts.map((text) => [Bun.randomUUIDv7() as string, [{ text, vector }]] as const),
  )
  await storePassages(database, { ownerId: owner, files })
})
afterAll(() => database.close())

test.each([
  ['年假', 0],
  ['带薪年假', 0],
  ['报销', 1],
  ['原始发票', 1],
  ['有給休暇', 2],
  ['繰り越す', 2],
  ['セキュリティカード', 3],
  ['カード', 3],
  ['総務部 東京', 3],
  ['ลาพักร้อน', 4],
  ['三月 翌年', 2],
  ['parking', 5],
])('%s', async (query, at) => {
  const params = { userId: owner, query, mode: 'keyword', topK: 3, tuning: searchTuning } as const
  const found = await searchPassages(database, params)
  expect(found[0]?.text).toBe(texts[at] ?? '')
})
