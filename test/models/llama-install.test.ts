import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageFault } from '#inference/upstreams/llama/package.ts'
import { lacksLlama } from '#test/support/llama.ts'
import { inheritedEnvironment } from '#test/support/process.ts'

const program = join(import.meta.dir, '../../src/main.ts')
const data = mkdtempSync(join(tmpdir(), 'sluice-install-'))
afterAll(() => rmSync(data, { recursive: true, force: true }))

async function run(...args: string[]) {
  const child = Bun.spawn([process.execPath, program, 'llama', 'install', ...args], {
    cwd: data,
    env: { ...inheritedEnvironment(), SLUICE_DATA: './kept' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, stdout, stderr }
}

// Whoever has the package for the tests can have it again.
test.skipIf(lacksLlama)(
  'one command installs what runs models, and shows that it works',
  async () => {
    const { code, stdout, stderr } = await run()
    expect(stderr + stdout).toContain('runs models on')
    expect(code).toBe(0)
    const folder = join(data, 'kept', 'llama')
    expect(packageFault(folder)).toBeNull()
    // What is for other platforms is left out.
    expect(existsSync(join(folder, 'node_modules/@node-llama-cpp/win-x64'))).toBeFalse()
    expect(readFileSync(join(folder, 'package.json'), 'utf8')).toContain('node-llama-cpp')
  },
)

test('the command reports unknown options', async () => {
  const { code, stderr } = await run('--everything')
  expect(code).toBe(1)
  expect(stderr).toContain('--everything')
})
