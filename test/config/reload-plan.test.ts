import { expect, test } from 'bun:test'
import { createLiveConfig } from '#config/live-config.ts'
import { loadConfig } from '#config/load.ts'
import { planReload } from '#config/reload-plan.ts'

const load = (text: string, environment: Record<string, string> = {}) =>
  loadConfig(environment, [], { path: 'sluice.toml', text, fault: null })

const gpu = (rest = '') => `
  [[upstream]]
  name = "gpu"
  url = "http://127.0.0.1:1/v1"
  ${rest}`

test('keys that reload change, others keep their values and are named', () => {
  const before = load('port = 9000\n[queue]\nwait_max_ms = 10\n[s3]\nbucket = "a"')
  const after = load(
    'port = 9001\nlog_level = "debug"\n[queue]\nwait_max_ms = 20\n[s3]\nbucket = "b"\n[limits]\nrequest_bytes_max = 4096\ntools_max = 3',
  )
  const { config, changed, needsRestart } = planReload(before, after)
  expect(config).toMatchObject({ port: 9000, logLevel: 'debug', queue: { waitMaxMs: 20 } })
  expect(config.s3.bucket).toBe('a')
  expect(config.limits).toEqual({ ...before.limits, toolsMax: 3 })
  expect(changed).toEqual([
    { key: 'log_level', before: 'info', after: 'debug' },
    { key: 'limits.tools_max', before: 1024, after: 3 },
    { key: 'queue.wait_max_ms', before: 10, after: 20 },
  ])
  expect(needsRestart.toSorted()).toEqual(['limits.request_bytes_max', 'port', 's3.bucket'])
})

test('a restart stays needed at each further reload, until the file has the old value again', () => {
  const start = load('port = 9000')
  const first = planReload(start, load('port = 9001'))
  const second = planReload(first.config, load('port = 9001\nlog_level = "warn"'))
  expect(second.needsRestart).toEqual(['port'])
  expect(planReload(second.config, load('port = 9000')).needsRestart).toEqual([])
})

test('each entry of a list or table is a change of its own, by name', () => {
  const before = load(`${gpu('weight = 1')}\n[[upstream]]\nname = "old"\nurl = "http://127.0.0.1:2"
    [prices.m]\ninput_per_million = 1\noutput_per_million = 2`)
  const after = load(`${gpu('weight = 2')}\n[[upstream]]\nname = "new"\nurl = "http://127.0.0.1:3"
    [prices.m]\ninput_per_million = 3\noutput_per_million = 2
    [groups]\nstaff = ["can_access_api"]`)
  const { changed } = planReload(before, after)
  expect(changed).toEqual([
    { key: 'prices.m.input_per_million', before: 1, after: 3 },
    { key: 'groups.staff', before: null, after: ['can_access_api'] },
    { key: 'upstream.gpu.weight', before: 1, after: 2 },
    { key: 'upstream.old', before: { name: 'old', url: 'http://127.0.0.1:2' }, after: null },
    { key: 'upstream.new', before: null, after: { name: 'new', url: 'http://127.0.0.1:3' } },
  ])
})

test('a changed order of upstreams is a change', () => {
  const [a, b] = ['a', 'b'].map(
    (name) => `[[upstream]]\nname = "${name}"\nurl = "http://h/${name}"\n`,
  )
  const { changed } = planReload(load(`${a}${b}`), load(`${b}${a}`))
  expect(changed).toEqual([{ key: 'upstream', before: ['a', 'b'], after: ['b', 'a'] }])
})

test('secrets are never shown, but their change is', () => {
  const before = load(gpu('key = "secret-one"\nheaders = { X-Token = "secret-two" }'))
  const after = load(gpu('key = "secret-three"\nheaders = { X-Token = "secret-four" }'))
  const added = load(`${gpu('key = "secret-one"\nheaders = { X-Token = "secret-two" }')}
    [[mcp_server]]\nlabel = "docs"\nurl = "http://h/"\nkey = "secret-five"`)
  for (const { changed } of [planReload(before, after), planReload(before, added)]) {
    expect(JSON.stringify(changed)).not.toContain('secret')
    expect(JSON.stringify(changed)).toContain('[redacted]')
  }
  expect(planReload(before, after).changed[1]?.after).toEqual({ 'X-Token': '[redacted]' })
  expect(planReload(before, after).changed.map(({ key }) => key)).toEqual([
    'upstream.gpu.key',
    'upstream.gpu.headers',
  ])
})

test('an unchanged file changes nothing', () => {
  const text = `${gpu('key = "k"')}\n[limits.default]\nrequests_per_minute = 5`
  const { changed, needsRestart } = planReload(load(text), load(text))
  expect({ changed, needsRestart }).toEqual({ changed: [], needsRestart: [] })
})

test('an environment variable stays above the file', () => {
  const environment = { LOG_LEVEL: 'error', GPU_KEY: 'k' }
  const before = load(gpu(), environment)
  const { config, changed } = planReload(
    before,
    load(`log_level = "debug"\n${gpu('key_env = "GPU_KEY"')}`, environment),
  )
  expect(config.logLevel).toBe('error')
  expect(config.upstream[0]?.key).toBe('k')
  expect(config.sources).toMatchObject({ log_level: { kind: 'environment' } })
  expect(changed.map(({ key }) => key)).toEqual(['upstream.gpu.key_env', 'upstream.gpu.key'])
})

test('the source of a key follows the reload', () => {
  const { config } = planReload(load('port = 1'), load('[retrieval]\nk = 5'))
  expect(config.sources).toEqual({ port: { kind: 'file' }, 'retrieval.k': { kind: 'file' } })
  expect(planReload(config, load('')).config.sources).toEqual({ port: { kind: 'file' } })
})

test('a live configuration has the sections of the latest one', () => {
  const { config, replace, current } = createLiveConfig(load('[limits]\ntools_max = 1'))
  const { limits } = config
  const next = load('[limits]\ntools_max = 2')
  replace(next)
  expect([limits.toolsMax, config.limits.toolsMax]).toEqual([1, 2])
  expect(current()).toBe(next)
  expect({ ...config }).toEqual({ ...next })
})
