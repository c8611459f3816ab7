import { expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { closestTests } from '#test/support/fast-tests.ts'
import { listMutants } from '../../scripts/mutants.ts'

const root = join(import.meta.dir, '../..')

const source = `export function fee(age: number): 0 | 5 | 9 {
  if (age < 0) throw new Error('no such age')
  if (age < 6) return 0
  return age >= 65 ? 5 : 9
}
`

test('mutants change conditions, boundaries, literals, guards and effects', () => {
  const text = `import { log } from './log.ts'
type Mode = 'on' | 'off'
export function run(items: string[], count: number) {
  log.info('run started', { count })
  if (items.length === 0) return
  const isLarge = count > 10 && !items.includes('a b')
  items.push(isLarge ? 'large' : 'small')
  return [count * 2]
}
class Latency {
  samples = 0
  #meanMs = 0
}
`
  const changes = listMutants('run.ts', text).map(({ line, change }) => `${line}: ${change}`)
  expect(changes).toEqual([
    '5: if (items.length === 0) return → removed',
    '5: items.length === 0 → !(items.length === 0)',
    '5: 0 → (0 + 1)',
    "6: count > 10 && !items.includes('a b') → count > 10 || !items.includes('a b')",
    '6: count > 10 → count >= 10',
    '6: 10 → (10 + 1)',
    "6: !items.includes('a b') → items.includes('a b')",
    "7: items.push(isLarge ? 'large' : 'small') → ;",
    '7: isLarge → !(isLarge)',
    "7: 'large' → ''",
    "7: 'small' → ''",
    '8: [count * 2] → []',
    '8: count * 2 → count / 2',
    '8: 2 → (2 + 1)',
    '11: 0 → (0 + 1)',
  ])
})

test('tests named like a file precede those of other folders', () => {
  const distances = new Map([['src/auth/session-cookie.ts', 4]])
  const tests = ['test/audit/a.test.ts', 'test/sessions/csrf.test.ts', 'test/auth/b.test.ts']
  const given = tests.map((file) => ({ file, distances, isFast: true }))
  expect(closestTests(given, 'src/auth/session-cookie.ts')).toEqual([
    'test/auth/b.test.ts',
    'test/sessions/csrf.test.ts',
    'test/audit/a.test.ts',
  ])
})

test('the test of a file precedes those of its folder, and these precede all others', () => {
  const tests = [
    { file: 'test/http/a.test.ts', distances: new Map([['src/auth/b.ts', 1]]), isFast: true },
    { file: 'test/auth/c.test.ts', distances: new Map([['src/auth/b.ts', 2]]), isFast: true },
    { file: 'test/auth/d.test.ts', distances: new Map([['src/auth/b.ts', 2]]), isFast: false },
    { file: 'test/auth/b.test.ts', distances: new Map([['src/auth/b.ts', 2]]), isFast: false },
    { file: 'test/auth/e.test.ts', distances: new Map([['src/auth/f.ts', 1]]), isFast: true },
  ]
  expect(closestTests(tests, 'src/auth/b.ts')).toEqual([
    'test/auth/b.test.ts',
    'test/auth/c.test.ts',
    'test/auth/d.test.ts',
    'test/http/a.test.ts',
  ])
})

test('the command lists what neither a test nor the compiler notices, whatever else begins to fail', async () => {
  const project = createProject({
    'package.json': '{ "type": "module" }',
    'src/fee.ts': source,
    'test/fee.test.ts': `import { expect, test } from 'bun:test'
import { fee } from '../src/fee.ts'
test('fees', () => expect([fee(5), fee(6), fee(70)]).toEqual([0, 9, 5]))
`,
    // Passes once, with or without a mutant.
    'test/src/fee.test.ts': `import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { fee } from '../../src/fee.ts'
test('a fee', () => expect([fee(5), fee(6), mkdirSync(process.env.PASSED_ONCE)]).toHaveLength(3))
`,
  })
  const command = Bun.spawn(
    [process.execPath, 'scripts/mutate.ts', 'src', '--root', project, '--min', '60'],
    {
      cwd: root,
      env: { ...process.env, PASSED_ONCE: join(project, 'passed') },
      stdout: 'pipe',
      stderr: 'inherit',
    },
  )
  const lines = (await command.stdout.text()).trim().split('\n')
  const survivors = lines.filter((line) => line.startsWith('src/'))
  expect(survivors.toSorted()).toEqual([
    'src/fee.ts:2: 0 → (0 + 1)',
    'src/fee.ts:2: age < 0 → age <= 0',
    "src/fee.ts:2: if (age < 0) throw new Error('no such age') → removed",
    'src/fee.ts:4: 65 → (65 + 1)',
    'src/fee.ts:4: age >= 65 → age > 65',
  ])
  expect(lines.at(-1)).toBe('score 64.3 %')
  expect(await command.exited).toBe(0)
})

/** A project with these files and the packages of this one. */
function createProject(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-mutate-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  cpSync(join(root, 'tsconfig.json'), join(folder, 'tsconfig.json'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}
