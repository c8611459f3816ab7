import { expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const project = join(import.meta.dir, '../..')
const migrations = join(project, 'db/migrations')

test('migrations are ordered by time, because the migrator skips older ones', () => {
  const journal: unknown = JSON.parse(readFileSync(join(migrations, 'meta/_journal.json'), 'utf8'))
  const times = Object(journal).entries.map((entry: { when: number }) => entry.when)
  expect(times).toEqual([...new Set<number>(times)].sort((left, right) => left - right))
})

test('everything in the schema is in a migration', async () => {
  const copy = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  cpSync(migrations, copy, { recursive: true })
  const program = [process.execPath, 'x', '--no-install', 'drizzle-kit', 'generate']
  // The tool resolves every path against its working directory.
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
