import { expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const project = join(import.meta.dir, '../..')
const migrations = join(project, 'db/migrations')

test('migrations are in the order of their times, because the migrator skips an older one', () => {
  const journal: unknown = JSON.parse(readFileSync(join(migrations, 'meta/_journal.json'), 'utf8'))
  const times = Object(journal).entries.map((entry: { when: number }) => entry.when)
  expect(times).toEqual([...new Set<number>(times)].sort((left, right) => left - right))
})

test('everything in the schema is in a migration', async () => {
  const copy = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  cpSync(migrations, copy, { recursive: true })
  const program = [process.execPath, 'x', '--no-install', 'drizzle-kit', 'generate']
  // The tool takes every path for one that begins at its working folder.
  const places = ['--schema', './db/schema/*.ts', '--out', relative(project, copy)]
  const child = Bun.spawn([...program, '--dialect', 'postgresql', ...places], {
    cwd: project,
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const output = await new Response(child.stdout).text()
  expect(output).toContain('No schema changes')
  expect(readdirSync(copy)).toEqual(readdirSync(migrations))
  rmSync(copy, { recursive: true })
})
