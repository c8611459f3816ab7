import { afterEach, expect, test } from 'bun:test'
import { asRecord, isRecord } from '#lib/json.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { type NamedUpstream, startNamedUpstream } from '#test/support/named-upstream.ts'
import { childrenOf, killProcess, signToken, stopProcesses } from '#test/support/process.ts'
import {
  changedKeys,
  type ReloadingGateway,
  startReloading,
  workersCount,
} from '#test/support/reloading.ts'

/** Reloads of the configuration file while requests run, in every worker. */

const upstreams: NamedUpstream[] = []
afterEach(async () => {
  await stopProcesses()
  for (const upstream of upstreams.splice(0)) await upstream.stop()
})

async function named(name: string): Promise<NamedUpstream> {
  const upstream = await startNamedUpstream(name)
  upstreams.push(upstream)
  return upstream
}

const upstreamText = (name: string, url: string, rest = '') =>
  `[[upstream]]\nname = "${name}"\nurl = "${url}"\nmodels = ["${name}"]\n${rest}\n`

const ask = async ({ gateway }: ReloadingGateway, model: string) => {
  const response = await gateway.ask({ model, input: 'hello' })
  return { status: response.status, text: await response.text() }
}

test('streams end as they began: their upstream is removed, its url, its key and the model name change', async () => {
  const [old, next] = [await named('old'), await named('next')]
  const text = upstreamText('gpu', old.url, 'key = "key-one"')
  const model = '[[model]]\nname = "writer"\nupstreams = ["gpu"]\nupstream_model = "gpu"\n'
  const world = await startReloading(text + model)
  const collected: Promise<string[]>[] = []
  const begin = async (name: string) => {
    old.hold()
    const before = old.held()
    const ends = streamsOf(world, name)
    await eventually('the streams have begun', () => old.held() === before + workersCount)
    collected.push(ends)
  }

  await begin('writer')
  await world.change(upstreamText('gpu', old.url, 'key = "key-two"') + model)
  await begin('writer')
  expect(new Set(old.keys())).toEqual(new Set(['Bearer key-one', 'Bearer key-two']))

  await world.change(upstreamText('gpu', next.url, 'key = "key-two"') + model)
  expect((await ask(world, 'writer')).text).toContain('next ends')

  await world.change(upstreamText('gpu', next.url) + model.replace('"writer"', '"author"'))
  expect((await ask(world, 'writer')).status).toBe(404)
  expect((await ask(world, 'author')).text).toContain('next ends')

  await world.change(upstreamText('spare', next.url))
  expect((await ask(world, 'author')).status).toBe(404)
  expect((await ask(world, 'spare')).text).toContain('next ends')

  expect(old.held()).toBe(2 * workersCount)
  old.release()
  for (const whole of (await Promise.all(collected)).flat()) {
    expect(whole).toContain('old begins ')
    expect(whole).toContain('old ends')
    expect(whole).toContain('data: [DONE]')
  }
  expect(old.keys()).toHaveLength(2 * workersCount)
})

async function streamsOf({ connections }: ReloadingGateway, model: string): Promise<string[]> {
  const token = { authorization: `Bearer ${await signToken()}` }
  const body = JSON.stringify({ model, input: 'hello', stream: true })
  const each = await connections()
  return Promise.all(each.map((one) => one.readToEnd('/v1/responses', token, body)))
}

test('groups, limits, prices and log level change in every worker; a running stream keeps its limits', async () => {
  const upstream = await named('gpu')
  const text = upstreamText('gpu', upstream.url)
  const world = await startReloading(text, { LOG_LEVEL: '' })
  upstream.hold()
  const events = readEvents(await world.gateway.ask({ model: 'gpu', input: 'hi', stream: true }))
  await events.until(/begins/)
  upstream.hold()
  expect((await world.as('staff', '/v1/config/history')).status).toBe(403)
  const answer = await world.change(`log_level = "warn"
    ${text}
    [limits]
    output_chars_max = 1024
    [limits.default]
    requests_per_minute = 1
    [groups]
    staff = ["can_access_api", "can_edit_config"]
    [deadlines]
    total_ms = 1
    [prices.gpu]
    input_per_million = 1
    output_per_million = 1`)
  expect(changedKeys(answer)).toEqual([
    'log_level',
    'limits.output_chars_max',
    'limits.default.requests_per_minute',
    'prices.gpu',
    'groups.staff',
    'deadlines.total_ms',
  ])
  const staff = { authorization: `Bearer ${await signToken(['staff'])}` }
  for (const connection of await world.connections()) {
    const { status } = await connection.exchange('GET', '/v1/config/history', staff)
    expect(status).toBe(200)
    const limits = await connection.exchange('GET', '/v1/config', staff)
    expect(JSON.parse(limits.body).limits.default).toEqual({ requests_per_minute: 1 })
  }
  const lines = world.gateway.log().length
  expect((await ask(world, 'gpu')).text).toContain('upstream_total_timeout')
  expect((await ask(world, 'gpu')).status).toBe(429)
  upstream.release()
  const levels = world.gateway.log().slice(lines)
  expect(levels.filter(({ level }) => level === 'info')).toEqual([])
  expect(await events.whole()).toEndWith('data: [DONE]\n\n')
})

test('a setting of an administrator stays above the file, until it is reset', async () => {
  const world = await startReloading('[retrieval]\nk = 4')
  const patch = (value: number | null) =>
    world.as('admins', '/v1/config', {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ retrieval_k: value }),
    })
  const current = async () => asRecord(await (await world.as('admins', '/v1/config')).json())
  expect((await patch(9)).status).toBe(200)
  expect(changedKeys(await world.change('[retrieval]\nk = 5'))).toEqual(['retrieval.k'])
  expect((await current())['retrieval_k']).toBe(9)
  expect((await patch(null)).status).toBe(200)
  await eventually('every worker has the value of the file', async () => {
    return (await current())['retrieval_k'] === 5
  })
})

test('the answer, the audit log and the log name what has changed without secrets, and what needs a restart', async () => {
  const upstream = await named('gpu')
  const world = await startReloading(upstreamText('gpu', upstream.url, 'key = "hidden-1"'))
  const answer = await world.change(
    `port = 1\nworkers = 7\nseal_keys = "hidden-0123456789-0123456789-012345"\n${upstreamText('gpu', upstream.url, 'key = "hidden-2"')}`,
  )
  expect(answer).toMatchObject({ object: 'config.reload', file: world.path })
  expect(answer['changed']).toEqual([
    { key: 'upstream.gpu.key', before: '[redacted]', after: '[redacted]' },
  ])
  // Variables of the environment set port and workers.
  expect(answer['needs_restart']).toEqual(['seal_keys'])
  const entries = asRecord(
    await (await world.as('admins', '/v1/audit-log?action=config.reload')).json(),
  )
  const [entry, ...others] = Array.isArray(entries['data']) ? entries['data'].filter(isRecord) : []
  expect(others).toEqual([])
  expect(entry).toMatchObject({
    resource: { type: 'config', id: world.path },
    changes: { before: { 'upstream.gpu.key': '[redacted]' } },
  })
  const warning = await world.gateway.logged('changed keys need a restart and keep their values')
  expect(warning['keys']).toEqual(['seal_keys'])
  expect(world.gateway.stdout() + JSON.stringify([answer, entries])).not.toContain('hidden-')
})

test('a reload needs the permission to edit the configuration', async () => {
  const world = await startReloading('log_level = "info"')
  world.write('log_level = "error"')
  const refused = await world.as('users', '/v1/config/reload', { method: 'POST' })
  expect(refused.status).toBe(403)
  expect(world.gateway.log().some(({ message }) => message === 'configuration reloaded')).toBe(
    false,
  )
})

test('a worker that starts later has what was accepted, not what the file has become', async () => {
  const [old, next] = [await named('old'), await named('next')]
  const world = await startReloading(upstreamText('old', old.url))
  await world.change(upstreamText('next', next.url))
  world.write('this is = = not valid')
  const listening = world.gateway.log().filter(({ message }) => message === 'listening').length
  for (const worker of childrenOf(world.gateway.pid)) killProcess(worker)
  await world.gateway.logged('listening', listening + workersCount)
  const token = { authorization: `Bearer ${await signToken()}` }
  for (const connection of await world.connections()) {
    const models = await connection.exchange('GET', '/v1/models', token)
    expect(models.body).toContain('"next"')
    expect(models.body).not.toContain('"old"')
  }
})
