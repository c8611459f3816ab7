import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** A client of openapi-python-client against the real gateway. It stops at the first union that it cannot read. */

const generator = Bun.which('openapi-python-client')
const isMissing = generator === null
if (isMissing) console.warn('skipped: openapi-python-client is not on the PATH')

describe.skipIf(isMissing)('a generated Python client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-python-'))
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway()
  })
  afterAll(async () => {
    await gateway.stop()
    rmSync(folder, { recursive: true })
  })

  test('is generated without a loss, and calls ten operations and more', async () => {
    const url = `${gateway.url}/openapi.json`
    const output = await run([
      ...[generator ?? '', 'generate', '--meta', 'none'],
      ...['--url', url, '--output-path', join(folder, 'sluice_client')],
    ])
    // Contents that are not JSON are read from the response.
    const losses = [...output.matchAll(/^(Unable|.*will not be generated).*$/gm)]
    expect(losses.map(([line]) => line)).toEqual([])
    const program = new URL('../support/client-generator/calls.py', import.meta.url).pathname
    const python = /^#!(.+)/.exec(await Bun.file(generator ?? '').text())?.[1] ?? 'python3'
    const called = await run([
      python,
      program,
      gateway.url,
      await gateway.token(['admins'], 'python'),
    ])
    const names = called.trim().split('\n')
    expect(names).toContainValues(['create_response', 'get_me', 'list_groups'])
    expect(names.length).toBeGreaterThanOrEqual(10)
  })

  async function run(command: string[]): Promise<string> {
    const env = { ...process.env, PYTHONPATH: folder }
    const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe', env })
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
    expect(await child.exited, output + errors).toBe(0)
    return output + errors
  }
})
