import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

/** The rows of the table in SECURITY.md. */
const rows = [
  ...readFileSync(join(root, 'SECURITY.md'), 'utf8').matchAll(
    /^\| ([A-Z]{2}\d+) \| .*\| `([^`]+)`: (.+) \|$/gm,
  ),
].map(([, id = '', file = '', title = '']) => ({ id, file: `test/${file}.test.ts`, title }))

/** The statements that have a row; HT6 and UP6 do not apply. */
const statements = { AK: 12, JW: 7, AC: 8, SS: 6, UP: 5, HT: 7, RS: 5, SU: 3 }

test('every statement has a row', () => {
  const expected = Object.entries(statements).flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, index) => `${kind}${index + 1}`),
  )
  const ids = new Set(rows.map(({ id }) => id))
  expect(expected.filter((id) => id !== 'HT6' && !ids.has(id))).toEqual([])
})

test('every test of the table exists', () => {
  const missing = rows.filter(({ file, title }) => {
    const path = join(root, file)
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(title)
  })
  expect(missing).toEqual([])
})
