import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  configFile,
  type GatewayProcess,
  inheritedEnvironment,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'

const root = join(import.meta.dir, '../..')
const startBlock = /^npx -y bun@1\.4\.5 start( +#.*)?$/
let gateway: GatewayProcess
let checkout: string
let tools: string

/** The server that the first block of the README starts, and its folder. */
beforeAll(async () => {
  checkout = join(temporaryFolder(), 'sluice')
  mkdirSync(join(checkout, 'data'), { recursive: true })
  for (const name of ['package.json', 'bun.lock', 'bunfig.toml', 'db', 'src', 'node_modules']) {
    symlinkSync(join(root, name), join(checkout, name))
  }
  tools = temporaryFolder()
  // The packages of the registry, from this machine.
  writeTool('npx', `[ "$1 $2" = '-y bun@1.4.5' ] && shift 2 && exec ${process.execPath} "$@"`)
  writeTool('npm', `[ "$1" = install ] && ln -sfn ${join(root, 'node_modules')} node_modules`)
  if (Bun.which('node') === null) writeTool('node', `exec ${process.execPath} "$@"`)
  gateway = await startGatewayProcess({
    dataFolder: join(checkout, 'data'),
    environment: { JWT_SECRET: '', SLUICE_CONFIG: configFile('') },
  })
})
afterAll(stopProcesses)

function writeTool(name: string, script: string): void {
  writeFileSync(join(tools, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(tools, name), 0o755)
}

function shellBlocks(path: string): string[] {
  const text = readFileSync(join(root, path), 'utf8')
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block.trimEnd())
}

/** Pastes the blocks into one shell; the port is that of the tests. */
async function paste(blocks: readonly string[]) {
  const script = blocks.join('\n').replaceAll(':8080/', `:${gateway.port()}/`)
  const environment = inheritedEnvironment()
  const child = Bun.spawn(['bash', '-e', '-o', 'pipefail', '-c', script], {
    cwd: checkout,
    // Of the tools of the project, only those that npm brings.
    env: { ...environment, PATH: `${tools}:${environment['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr, code }
}

test('the blocks of the README work when pasted in order', async () => {
  const [first = '', ...others] = shellBlocks('README.md')
  expect(first).toMatch(startBlock)
  expect(others.length).toBeGreaterThanOrEqual(3)
  const { stdout, stderr, code } = await paste(others)
  expect({ code, stderr }).toMatchObject({ code: 0 })
  expect(stdout).toMatch(/^sk-svc-v1-\w+\n/)
  expect(stdout).toContain('event: response.completed')
  expect(stdout).not.toContain('"error":{')
  expect(stdout.match(/I am a demo model/g)?.length).toBeGreaterThanOrEqual(3)
})

test.each(['docs/clients.md', 'docs/administration.md', 'docs/retrieval.md'])(
  'the blocks of %s work when pasted in order',
  async (path) => {
    const { stdout, stderr, code } = await paste(shellBlocks(path))
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stdout).toStartWith('{"id":')
    expect(stdout).not.toContain('"error":{')
    if (path !== 'docs/retrieval.md') return
    expect(stdout).toContain('"data":[{"file_id":')
    expect(stdout).toContain('"type":"file_citation"')
  },
)

test('no other page has blocks that are not tested', () => {
  for (const page of ['models', 'operations', 'speech', 'configuration']) {
    expect(shellBlocks(`docs/${page}.md`)).toEqual([])
  }
})
