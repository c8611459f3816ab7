import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { asRecord } from '#lib/json.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  childrenOf,
  killProcess,
  launchGateway,
  signToken,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import {
  changedKeys,
  type ReloadingGateway,
  startReloading,
  workersCount,
} from '#test/support/reloading.ts'

/** Files that are not valid, ways to replace a file, and signals at any time. */

afterEach(stopProcesses)

const valid = (k: number) => `[retrieval]\nk = ${k}\n`
const k = async ({ as }: ReloadingGateway) =>
  asRecord(await (await as('admins', '/v1/config')).json())['retrieval_k']

const faults: Readonly<Record<string, { text: string; says: string }>> = {
  'a syntax error, with its line': {
    text: `${valid(5)}[queue]\nwait_max_ms = = 5\n`,
    says: ':4 is not valid TOML',
  },
  'an unknown key, with a suggestion': {
    text: '[retrieval]\nkk = 5\n[queue]\nwait_max_m = 5',
    says: 'queue.wait_max_m: unknown key; did you mean wait_max_ms?',
  },
  'a value of the wrong type': {
    text: '[retrieval]\nk = "many"',
    says: 'retrieval.k (SLUICE_RETRIEVAL_K): expected integer.',
  },
  'a value out of bounds': { text: valid(51), says: 'less or equal to 50' },
  'keys that do not fit together': {
    text: `${valid(5)}[[model]]\nname = "m"\nupstreams = ["gone"]`,
    says: 'model.0.upstreams: no upstream "gone".',
  },
  'a protocol that does not exist': {
    text: `${valid(5)}[[upstream]]\nname = "u"\nurl = "http://h/v1"\napi = "chatt"`,
    says: 'upstream.0.api',
  },
  'an engine that does not exist': {
    text: `${valid(5)}[[engine]]\nname = "e"\nkind = "voskk"`,
    says: 'engine.0.kind',
  },
  'a variable that is not set': {
    text: `${valid(5)}[[upstream]]\nname = "u"\nurl = "http://h/v1"\nkey_env = "NO_SUCH_KEY"`,
    says: 'the variable NO_SUCH_KEY is not set',
  },
  'a key that fits only after a restart': {
    text: `${valid(5)}[llama]\nenabled = true\n[[model]]\nname = "m"\nupstreams = ["local"]`,
    says: 'These changed keys need a restart: llama.enabled.',
  },
}

test('a file that is not valid changes nothing and says why, as a start does', async () => {
  const text = `${valid(4)}[llama]\nenabled = false\n`
  const world = await startReloading(text)
  for (const [what, { text: wrong, says }] of Object.entries(faults)) {
    world.write(wrong)
    const { status, answer, message } = await world.reload()
    expect({ what, status, code: asRecord(answer['error'])['code'] }).toEqual({
      what,
      status: 422,
      code: 'invalid_config',
    })
    expect(message).toContain(says)
    expect(await k(world)).toBe(4)
    if (what.includes('restart')) continue
    const refused = await launchGateway({ environment: { SLUICE_CONFIG: world.path } })
    expect(await refused.exited).toBe(1)
    expect(refused.stderr()).toContain(says)
  }
  await world.gateway.logged(
    'configuration not reloaded, it is not valid',
    Object.keys(faults).length,
  )
  expect(changedKeys(await world.change(`${valid(6)}[llama]\nenabled = false\n`))).toEqual([
    'retrieval.k',
  ])
})

test('a file that cannot be read changes nothing', async () => {
  const world = await startReloading(valid(4))
  const replaceBy = (make: (path: string) => void) => {
    rmSync(world.path, { recursive: true, force: true })
    make(world.path)
    return world.reload()
  }
  expect((await replaceBy(() => {})).message).toContain('no such file')
  expect((await replaceBy((path) => mkdirSync(path))).message).toContain('cannot be read')
  expect((await replaceBy((path) => Bun.spawnSync(['mkfifo', path]))).message).toContain(
    'is a pipe',
  )
  const large = '#'.repeat(16_777_217)
  expect((await replaceBy((path) => writeFileSync(path, large))).message).toContain('larger than')
  expect((await replaceBy((path) => symlinkSync(`${path}.gone`, path))).message).toContain(
    'no such file',
  )
  expect(await k(world)).toBe(4)
  rmSync(world.path)
  await world.change(valid(5))
  expect(await k(world)).toBe(5)
})

test('the default file may appear, but a reload does not take its removal for an empty one', async () => {
  const folder = temporaryFolder()
  const gateway = await startGatewayProcess({ cwd: folder, environment: { SLUICE_CONFIG: '' } })
  const path = join(folder, 'sluice.toml')
  gateway.signal('SIGHUP')
  expect(await gateway.logged('configuration reloaded')).toMatchObject({ file: null, changed: [] })
  writeFileSync(path, valid(7))
  gateway.signal('SIGHUP')
  expect(await gateway.logged('configuration reloaded', 2)).toMatchObject({
    changed: ['retrieval.k'],
  })
  rmSync(path)
  gateway.signal('SIGHUP')
  expect(await gateway.logged('configuration not reloaded, it is not valid')).toMatchObject({
    faults: ['./sluice.toml: no such file.'],
  })
})

test('a file is replaced as editors and as Kubernetes do it', async () => {
  const folder = temporaryFolder()
  const version = (name: string, text: string) => {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'sluice.toml'), text)
  }
  const swap = (name: string) => {
    symlinkSync(name, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  version('..one', valid(4))
  swap('..one')
  symlinkSync(join('..data', 'sluice.toml'), join(folder, 'sluice.toml'))
  const world = await startReloading('', { SLUICE_CONFIG: join(folder, 'sluice.toml') })
  version('..two', valid(5))
  swap('..two')
  rmSync(join(folder, '..one'), { recursive: true })
  expect(changedKeys((await world.reload()).answer)).toEqual(['retrieval.k'])
  expect(await k(world)).toBe(5)
  writeFileSync(join(dirname(world.path), '.sluice.toml.swp'), valid(6))
  renameSync(join(dirname(world.path), '.sluice.toml.swp'), world.path)
  expect((await world.reload()).status).toBe(200)
  expect(await k(world)).toBe(6)
})

test('after a burst of signals and requests, the newest file is in effect in every worker', async () => {
  const world = await startReloading(valid(1))
  const requests: Promise<unknown>[] = []
  for (let turn = 2; turn <= 40; turn++) {
    world.write(valid(turn))
    world.gateway.signal('SIGHUP')
    for (const worker of childrenOf(world.gateway.pid)) killProcess(worker, 'SIGHUP')
    if (turn % 4 === 0) requests.push(world.reload())
    await Bun.sleep(turn % 3)
  }
  await Promise.all(requests)
  await eventually('the last file is in effect', async () => {
    const found = await valuesOf(world)
    return found.size === 1 && found.has('40')
  })
  expect(childrenOf(world.gateway.pid)).toHaveLength(workersCount)
})

test('a signal to one worker reloads all of them', async () => {
  const world = await startReloading(valid(4))
  world.write(valid(5))
  killProcess(childrenOf(world.gateway.pid)[0], 'SIGHUP')
  await world.gateway.logged('configuration reloaded')
  expect(await valuesOf(world)).toEqual(new Set(['5']))
})

test('a signal is remembered as soon as the process handles it', async () => {
  const path = join(temporaryFolder(), 'sluice.toml')
  writeFileSync(path, valid(4))
  const gateway = await launchGateway({ environment: { SLUICE_CONFIG: path } })
  await eventually('it handles the signal', () => handlesHangups(gateway.pid))
  gateway.signal('SIGHUP')
  expect(await gateway.logged('configuration reloaded')).toMatchObject({ changed: [] })
})

test('a signal during the start is followed before the workers serve', async () => {
  const path = join(temporaryFolder(), 'sluice.toml')
  writeFileSync(path, valid(4))
  const gateway = await launchGateway({
    environment: { SLUICE_CONFIG: path, SLUICE_WORKERS: String(workersCount) },
  })
  await eventually('the first worker starts', () => childrenOf(gateway.pid).length > 0)
  writeFileSync(path, valid(5))
  gateway.signal('SIGHUP')
  expect(await gateway.logged('configuration reloaded')).toMatchObject({ changed: ['retrieval.k'] })
  await gateway.logged('listening', workersCount)
  const response = await gateway.request('/v1/config')
  expect(asRecord(await response.json())['retrieval_k']).toBe(5)
})

test('signals while the gateway drains change nothing and end no stream', async () => {
  const upstream = await startHeldUpstream()
  try {
    const gateway = await startGatewayProcess({
      environment: { SLUICE_CONFIG: upstream.configFile },
    })
    const events = readEvents(await gateway.ask({ model: 'held', input: 'hello', stream: true }))
    await events.until(/output_text\.delta/)
    gateway.signal('SIGTERM')
    await gateway.logged('stopping')
    writeFileSync(upstream.configFile, valid(5))
    gateway.signal('SIGHUP')
    for (const worker of childrenOf(gateway.pid)) killProcess(worker, 'SIGHUP')
    upstream.release()
    expect(await events.whole()).toEndWith('data: [DONE]\n\n')
    expect(await gateway.exited).toBe(0)
    expect(gateway.stdout()).not.toContain('configuration reloaded')
  } finally {
    await stopProcesses()
    await upstream.stop()
  }
})

/** The values of `retrieval_k` in every worker. */
async function valuesOf({ connections }: ReloadingGateway) {
  const admin = { authorization: `Bearer ${await signToken(['admins'])}` }
  const read = (await connections()).map(async (connection) => {
    const { body } = await connection.exchange('GET', '/v1/config', admin)
    return /"retrieval_k":(\d+)/.exec(body)?.[1]
  })
  return new Set(await Promise.all(read))
}

/** The lowest bit of the mask is SIGHUP. */
function handlesHangups(pid: number): boolean {
  try {
    const mask = /^SigCgt:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return (Number.parseInt(mask?.at(-1) ?? '0', 16) & 1) === 1
  } catch {
    return false
  }
}
