import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'
import { refusalOf } from './resolve-source.ts'

/** Errors name the host, and the setting that configures it. */

let origin: ModelOrigin
beforeEach(async () => {
  origin = await startModelOrigin()
})
afterEach(() => origin.stop())

const urlOf = (url: string) => ({ kind: 'url', url, sha256: null }) as const
const hub = { kind: 'hub', repository: 'org/name', revision: 'main', files: [] } as const
const oci = (reference: string) => ({ kind: 'oci', reference }) as const
const host = () => `127.0.0.1:${origin.port}`

test.each([401, 404, 429, 451, 500])('status %d names the hub and its setting', async (status) => {
  origin.alwaysMisbehave('/api/models/org/name/revision/main', { kind: 'status', status })
  const refusal = await refusalOf(hub, { settings: { hubUrl: origin.url } })
  expect(refusal).toContain(`${host()} (installer.hub_url)`)
  expect(refusal.includes('installer.hub_token')).toBe(status === 401)
})

test('a host that is not allowed', async () => {
  const refusal = await refusalOf(oci('ghcr.io/org/tiny:v1'))
  expect(refusal).toBe(
    'host_not_allowed: The source ghcr.io names a host that is not allowed here. See installer.hosts.',
  )
})

test('a redirect to a host that is not allowed', async () => {
  origin.put('/model.gguf', new Uint8Array(3))
  const headers = { location: 'https://cdn.example/model.gguf' }
  origin.alwaysMisbehave('/model.gguf', { kind: 'status', status: 302, headers })
  // From http, so that both schemes may follow.
  const refusal = await refusalOf(urlOf(`${origin.url}/model.gguf`))
  expect(refusal).toBe(
    'host_not_allowed: The redirect to cdn.example names a host that is not allowed here. See installer.hosts.',
  )
})

test('a port that is not allowed', async () => {
  const settings = { ports: [443] }
  const refusal = await refusalOf(urlOf('https://localhost:8443/a.gguf'), { settings })
  expect(refusal).toContain('The source localhost:8443 names a port')
  expect(refusal).toEndWith('See installer.ports.')
})

test.each(['http://localhost/a.gguf', 'https://127.0.0.1/a.gguf'])(
  'the private host of %s',
  async (url) => {
    const refusal = await refusalOf(urlOf(url), { settings: { privateHosts: false } })
    expect(refusal).toEndWith('See installer.private_hosts.')
  },
)

test('a hub that cannot be resolved or reached', async () => {
  const unknown = await refusalOf(hub, { settings: { hubUrl: 'https://hub.invalid' } })
  expect(unknown).toContain('The host hub.invalid (installer.hub_url) cannot be resolved.')
  const closed = await startModelOrigin()
  await closed.stop()
  const unreachable = await refusalOf(hub, { settings: { hubUrl: closed.url } })
  expect(unreachable).toContain(
    `127.0.0.1:${closed.port} (installer.hub_url) could not be reached.`,
  )
})

test('a hub that does not respond', async () => {
  origin.put('/api/models/org/name/revision/main', new Uint8Array(100))
  origin.alwaysMisbehave('/api/models/org/name/revision/main', { kind: 'stall', afterBytes: 1 })
  const refusal = await refusalOf(hub, { settings: { hubUrl: origin.url, answerMs: 50 } })
  expect(refusal).toContain(
    `${host()} (installer.hub_url) did not respond within 0.05 s (installer.answer_ms).`,
  )
})
