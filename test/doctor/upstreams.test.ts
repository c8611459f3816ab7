import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageName, packageVersion } from '#inference/upstreams/onnx/package.ts'
import { onnxFolder } from '#models/onnx-config.ts'
import { writeInstalledModel } from '#test/support/embedding/installed-model.ts'
import { stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { runDoctor } from './run-doctor.ts'

/** The doctor: real upstreams, working and broken, and the configured models. */

afterEach(stopProcesses)

const key = 'sk-upstream-0123456789'

type Answer = (request: Request) => Response | Promise<Response>

const listing = (...ids: string[]) =>
  Response.json({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) })

function serve(answer: Answer) {
  return Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
}

function upstream(name: string, port: number | undefined, more = ''): string {
  return `[[upstream]]\nname = "${name}"\nurl = "http://127.0.0.1:${port}/v1"\n${more}\n`
}

test('an upstream that lists its models passes and receives the credential', async () => {
  using server = serve(({ headers, url }) => {
    const isAsked = new URL(url).pathname === '/v1/models'
    return isAsked && headers.get('authorization') === `Bearer ${key}`
      ? listing('small', 'large')
      : new Response('no', { status: 401 })
  })
  const { finding, stdout } = await runDoctor({
    environment: { SLUICE_UPSTREAM_URL: `${server.url}v1`, SLUICE_UPSTREAM_KEY: key },
  })
  expect(finding('upstream "default"').verdict).toBe('ok')
  expect(finding('upstream "default"').detail).toContain('lists 2 models, with its credential')
  expect(finding('clock of upstream "default"').verdict).toBe('ok')
  expect(stdout).not.toContain(key)
})

test('an upstream that refuses the credential fails, and the credential it quotes is redacted', async () => {
  using server = serve(({ headers }) =>
    Response.json(
      { error: { message: `no such key: ${headers.get('authorization')}` } },
      { status: 401 },
    ),
  )
  const given = await runDoctor({
    toml: upstream('one', server.port, `key = "${key}"`) + upstream('two', server.port),
  })
  expect(given.exitCode).toBe(1)
  expect(given.finding('upstream "one"').detail).toContain('refuses the credential (401)')
  expect(given.finding('upstream "two"').detail).toContain('requires a credential (401)')
  expect(given.finding('upstream "one"').advice).toContain('key_env')
  expect(given.stdout).not.toContain(key)
})

test('each upstream is reported separately, whatever its fault', async () => {
  using failing = serve(() => new Response('oh', { status: 500 }))
  using page = serve(() => new Response('<html>', { headers: { 'content-type': 'text/html' } }))
  using bare = serve(() => new Response('not found', { status: 404 }))
  using empty = serve(() => listing())
  await using hanging = serve(() => new Promise<Response>(() => {}))
  const { exitCode, finding } = await runDoctor({
    toml: [
      '[models]\nrefresh_timeout_ms = 400',
      upstream('away', 1),
      upstream('failing', failing.port),
      upstream('page', page.port),
      upstream('bare', bare.port),
      upstream('named', bare.port, 'models = ["small"]'),
      upstream('empty', empty.port),
      upstream('hanging', hanging.port),
    ].join('\n'),
  })
  const of = (name: string) => finding(`upstream "${name}"`)
  expect(exitCode).toBe(1)
  expect(of('away')).toMatchObject({ verdict: 'fail' })
  expect(of('away').advice).toContain('Start it')
  expect(of('failing')).toMatchObject({ verdict: 'fail', advice: 'See its log.' })
  expect(of('page').verdict).toBe('fail')
  expect(of('bare')).toMatchObject({ verdict: 'fail' })
  expect(of('bare').advice).toContain('/v1')
  expect(of('named').verdict).toBe('ok')
  expect(of('empty').verdict).toBe('warn')
  expect(of('hanging').detail).toContain('no response within 400 ms')
})

test('an upstream with a wrong clock is reported', async () => {
  using server = serve(() => {
    const answer = listing('small')
    answer.headers.set('date', new Date(Date.now() - 3_600_000).toUTCString())
    return answer
  })
  const { exitCode, finding } = await runDoctor({ toml: upstream('late', server.port) })
  expect(exitCode).toBe(0)
  expect(finding('clock of upstream "late"')).toMatchObject({ verdict: 'warn' })
  expect(finding('clock of upstream "late"').detail).toMatch(/^3\d{3}\.\d s behind ours$/)
})

test('models that no upstream lists are reported, including those of search', async () => {
  using server = serve(() => listing('small', 'embed-v2'))
  const toml = [
    '[retrieval]\nembedding_model = "embed"\nreranker_model = "writer"',
    upstream('one', server.port),
    upstream('away', 1),
    '[[model]]\nname = "writer"\nupstreams = ["one"]\nupstream_model = "small"',
    '[[model]]\nname = "lost"\nupstreams = ["one"]',
    '[[model]]\nname = "perhaps"\nupstreams = ["one", "away"]',
    '[[model]]\nname = "embed"\nmode = "embed"\nupstreams = ["one"]\nupstream_model = "embed-v2"',
  ].join('\n')
  const { finding, complaints } = await runDoctor({ toml })
  expect(finding('models').detail).toContain('2 of 4 are listed')
  expect(finding('model "lost"')).toMatchObject({ verdict: 'warn' })
  expect(complaints).not.toContain('warn model "perhaps"')
  expect(finding('embedding model').verdict).toBe('ok')
  expect(finding('rerank model')).toMatchObject({ verdict: 'fail' })
  expect(finding('rerank model').detail).toContain('has the mode generate')
})

test('a fallback that does not exist is reported', async () => {
  using server = serve(() => listing('small'))
  const { finding } = await runDoctor({
    toml: `${upstream('one', server.port)}
[[model]]
name = "large"
upstreams = ["one"]
upstream_model = "small"
fallbacks = ["small", "gone"]
`,
  })
  expect(finding('model "large"')).toMatchObject({
    verdict: 'warn',
    detail: 'there is no model "gone" to fall back to',
  })
})

test('a missing embedding model fails', async () => {
  const { exitCode, finding } = await runDoctor({
    environment: { SLUICE_EMBEDDING_MODEL: 'nowhere', SLUICE_RERANK_MODEL: 'nowhere' },
  })
  expect(exitCode).toBe(1)
  expect(finding('embedding model').detail).toBe('there is no [[model]] "nowhere"')
  expect(finding('rerank model').verdict).toBe('fail')
})

test('installed embedding and rerank models need no [[model]], with their runtime', async () => {
  const dataFolder = temporaryFolder()
  const models = join(dataFolder, 'models')
  const files = (architecture: string) => ({
    'model.onnx': 'weights',
    'tokenizer.json': '{}',
    'config.json': JSON.stringify({ architectures: [architecture] }),
  })
  writeInstalledModel(models, 'house/e5', files('BertModel'))
  writeInstalledModel(models, 'house/reranker', files('BertForSequenceClassification'))
  const search = (embedding: string) =>
    `[retrieval]\nembedding_model = "${embedding}"\nreranker_model = "house/reranker"\n`
  const without = await runDoctor({ dataFolder, toml: search('house/e5') })
  expect(without.finding('embedding model').verdict).toBe('fail')

  const runtime = join(onnxFolder({ data: dataFolder, onnx: {} }), 'node_modules', packageName)
  mkdirSync(runtime, { recursive: true })
  writeFileSync(join(runtime, 'package.json'), JSON.stringify({ version: packageVersion }))
  const installed = await runDoctor({ dataFolder, toml: search('house/e5') })
  expect(installed.exitCode).toBe(0)
  expect(installed.finding('embedding model').detail).toContain('installed on this machine')
  expect(installed.finding('rerank model')).toMatchObject({ verdict: 'ok' })
  const swapped = await runDoctor({ dataFolder, toml: search('house/reranker') })
  expect(swapped.finding('embedding model').detail).toContain('has the mode rerank')
})
