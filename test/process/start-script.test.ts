import { afterEach, expect, test } from 'bun:test'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runtimeFault } from '#runtime.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  childrenOf,
  inheritedEnvironment,
  isAlive,
  killProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'

afterEach(stopProcesses)

const root = join(import.meta.dir, '../..')
const remedy = 'Start it with: npx -y bun@1.4.5 start'

test.each([
  [{ bun: '1.4.5' }, null],
  [{ bun: '1.4.10' }, null],
  [{ bun: '2.0.0-canary.1' }, null],
  [{ bun: '1.4.4' }, `Sluice needs Bun 1.4.5 or later, and this is Bun 1.4.4. ${remedy}`],
  [{ bun: '1.3.14' }, `Sluice needs Bun 1.4.5 or later, and this is Bun 1.3.14. ${remedy}`],
])('the runtime %j is accepted or refused with one sentence', (versions, fault) => {
  expect(runtimeFault(versions)).toBe(fault)
})

const node = Bun.which('node')
test.skipIf(node === null)('Node of any version gets one sentence', async () => {
  // Old ones know neither types nor this file extension in a package of modules.
  const version = Bun.spawnSync([node ?? '', '--version'])
    .stdout.toString()
    .trim()
    .slice(1)
  const sentence = `Sluice runs on Bun 1.4.5 or later, and this is Node ${version}. ${remedy}\n`
  for (const [path, cwd] of [
    ['src/main.ts', root],
    [join(root, 'src/main.ts'), '/'],
  ] as const) {
    expect(await run([node ?? '', path], cwd, {})).toEqual({ stderr: sentence, code: 1 })
  }
})

/** The files that a first start needs before its packages are installed. */
function freshCheckout(): string {
  const folder = temporaryFolder()
  for (const path of ['package.json', 'bun.lock', 'bunfig.toml', 'db', 'scripts', 'src']) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(root, path), join(folder, path), { recursive: true })
  }
  return folder
}

async function run(command: string[], cwd: string, environment: Record<string, string>) {
  const env = { ...inheritedEnvironment(), ...environment }
  const child = Bun.spawn(command, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
  return { stderr, code }
}

test('without Bun on the PATH the start script says how to start', async () => {
  const tools = temporaryFolder()
  for (const name of ['sh', 'sed']) symlinkSync(Bun.which(name) ?? '', join(tools, name))
  const started = await run(['sh', 'scripts/install.sh'], root, { PATH: tools })
  expect(started).toEqual({
    stderr: `Sluice runs on Bun, which is not on the PATH. ${remedy}\n`,
    code: 1,
  })
})

test('an unreachable registry at the first start is one clear sentence', async () => {
  const folder = freshCheckout()
  const { stderr, code } = await run([process.execPath, 'start'], folder, {
    NPM_CONFIG_REGISTRY: 'http://127.0.0.1:1',
    BUN_INSTALL_CACHE_DIR: temporaryFolder(),
  })
  expect(code).toBe(1)
  const said = stderr.split('\n').filter((line) => !/^Installing packages|^\$ |^$/.test(line))
  expect(said).toHaveLength(2)
  expect(said[0]).toMatch(/^The package registry cannot be reached \(error: ConnectionRefused .+\)/)
  expect(said[1]).toContain('script "prestart" exited with code 1')
})

test('a missing package is one clear sentence', async () => {
  const { stderr, code } = await run([process.execPath, 'src/main.ts'], freshCheckout(), {})
  expect(code).toBe(1)
  expect(stderr).toMatch(/^The package \S+ is not installed\. Run: bun install --production\n$/)
})

test('SIGTERM to npx ends the server', async () => {
  const folder = temporaryFolder()
  const start = `${process.execPath} ${join(root, 'src/main.ts')}`
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { start } }))
  // As npx runs it: a shell that stays, and does not pass signals on.
  const npx = Bun.spawn(['sh', '-c', `${process.execPath} start & echo; wait`], {
    cwd: folder,
    env: {
      ...inheritedEnvironment(),
      npm_config_user_agent: 'npm/11.19.1 node/v20.20.2 linux x64 workspaces/false',
      SLUICE_DATA: join(folder, 'data'),
      PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const reader = npx.stdout.getReader()
  const decoder = new TextDecoder()
  let log = ''
  const readUntil = async (text: string) => {
    while (!log.includes(text)) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`the output ended: ${log}`)
      log += decoder.decode(value, { stream: true })
    }
  }
  await readUntil('"message":"listening"')
  const [launcher] = childrenOf(npx.pid)
  killProcess(npx.pid, 'SIGTERM')
  await eventually('the shell ends', () => !isAlive(npx.pid))
  try {
    await readUntil('"message":"stopped"')
  } finally {
    if (launcher !== undefined && isAlive(launcher)) killProcess(launcher, 'SIGTERM')
  }
})
