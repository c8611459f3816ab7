import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransfer } from '#installer/transfer/transfer.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { transferSettings } from '#test/installer/transfer/transfer-fixture.ts'
import { sha256Of } from './hub-server.ts'
import {
  digestOf,
  indexType,
  type Layer,
  manifestOf,
  manifestType,
  type RegistryOptions,
  type RegistryServer,
  startRegistry,
} from './registry-server.ts'
import { pathsOf, refusalOf, resolveSource } from './resolve-source.ts'

const text = (content: string) => new TextEncoder().encode(content)
const weights = text('GGUF and so on')
const titled = (title: string, content = weights): Layer => ({
  content,
  annotations: { 'org.opencontainers.image.title': title },
})
const servers: RegistryServer[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})

function serve(layers: readonly Layer[], options: Partial<RegistryOptions> = {}): RegistryServer {
  const registry = startRegistry({ layers, ...options })
  servers.push(registry)
  return registry
}

const source = (reference: string) => ({ kind: 'oci', reference }) as const
const latest = ({ host }: RegistryServer) => source(`${host}/library/model:latest`)

test('files have the names of their titles and the hashes of their digests', async () => {
  const registry = serve([titled('model.gguf'), titled('docs/README.md', text('read me'))])
  const { resolved } = await resolveSource(latest(registry))
  expect(resolved.revision).toBe(registry.manifestDigest)
  expect(resolved.files).toEqual([
    {
      path: 'model.gguf',
      bytes: weights.length,
      sha256: sha256Of(weights),
      from: { url: `http://${registry.host}/v2/library/model/blobs/${digestOf(weights)}` },
    },
    expect.objectContaining({ path: 'docs/README.md' }),
  ])
})

test('files without a title are named by their media types', async () => {
  const of = (kind: string, content: string): Layer => ({
    content: text(content),
    mediaType: `application/vnd.ollama.image.${kind}`,
  })
  const registry = serve([
    of('model', 'GGUF'),
    of('template', '{{ . }}'),
    of('params', '{}'),
    of('license', 'MIT'),
    of('license', 'and another'),
    { content: text('tar'), mediaType: 'application/vnd.oci.image.layer.v1.tar' },
  ])
  expect(pathsOf(await resolveSource(latest(registry)))).toEqual([
    'model.gguf',
    'template.txt',
    'params.json',
    'license.txt',
    'license-2.txt',
  ])
})

test('a registry that requires a token gets its anonymous one', async () => {
  const registry = serve([titled('model.gguf')], { wantsToken: true })
  const { resolved } = await resolveSource(latest(registry))
  expect(resolved.files).toHaveLength(1)
  expect(registry.questions.map(({ path }) => path)).toEqual([
    '/v2/library/model/manifests/latest',
    '/token',
    '/v2/library/model/manifests/latest',
  ])
  const token = registry.questions.at(-1)?.token.replace('Bearer ', '') ?? ''
  const asked = Buffer.from(token, 'base64url').toString()
  expect(asked).toBe('models repository:library/model:pull 0')
})

test('a transfer uses tokens and renews expired ones', async () => {
  const content = Buffer.alloc(300_000, 'weights')
  const registry = serve([titled('model.gguf', content)], { wantsToken: true })
  const { resolved } = await resolveSource(latest(registry))
  const [file] = resolved.files
  if (file === undefined) throw new Error('no file')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-oci-'))
  const transfer = createTransfer(transferSettings, { fetch, resolve: resolveHost })
  for (const part of ['one', 'two']) {
    const partPath = join(folder, part)
    const { signal } = new AbortController()
    const quiet = { onProgress() {}, onVerifying() {}, logLine() {} }
    const transferred = await transfer(file, { partPath, signal, ...quiet })
    expect(transferred.isVerified).toBe(true)
    expect(readFileSync(partPath).equals(content)).toBe(true)
    registry.forgetTokens()
  }
  rmSync(folder, { recursive: true })
})

test('the token server must be an allowed host', async () => {
  const realm = 'https://elsewhere.example/token'
  const registry = serve([titled('model.gguf')], { wantsToken: true, realm })
  expect(await refusalOf(latest(registry))).toStartWith('host_not_allowed')
  const none = serve([titled('model.gguf')], { wantsToken: true, realm: 'nowhere' })
  expect(await refusalOf(latest(none))).toStartWith('source_auth_required')
})

test('a reference by digest accepts only that manifest', async () => {
  const registry = serve([titled('model.gguf')])
  const exact = source(`${registry.host}/library/model@${registry.manifestDigest}`)
  expect(pathsOf(await resolveSource(exact))).toEqual(['model.gguf'])
  const wrong = digestOf(text('other'))
  const liar = serve([titled('model.gguf')], { manifests: {} })
  expect(await refusalOf(source(`${liar.host}/library/model@${wrong}`))).toStartWith('not_found')
  const tampering = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => Response.json(manifestOf([titled('evil.gguf')])),
  })
  const refusal = await refusalOf(source(`127.0.0.1:${tampering.port}/library/model@${wrong}`))
  expect(refusal).toStartWith('hash_mismatch')
  await tampering.stop(true)
})

test('an index with one model is followed; several require a choice', async () => {
  const one = manifestOf([titled('model.gguf')])
  const bytes = text(JSON.stringify(one))
  const entry = { mediaType: manifestType, digest: digestOf(bytes), size: bytes.length }
  const statement = {
    ...entry,
    annotations: { 'vnd.docker.reference.type': 'attestation-manifest' },
  }
  const index = (manifests: object[]) => ({ schemaVersion: 2, mediaType: indexType, manifests })
  const registry = serve([titled('model.gguf')], {
    manifests: { one: index([statement, entry]), two: index([entry, entry]), none: index([]) },
  })
  const at = (tag: string) => source(`${registry.host}/library/model:${tag}`)
  const { resolved } = await resolveSource(at('one'))
  expect(resolved.revision).toBe(digestOf(bytes))
  expect(await refusalOf(at('two'))).toStartWith('bad_source')
  expect(await refusalOf(at('none'))).toStartWith('bad_source')
})

for (const [name, layers, code] of [
  ['no file at all', [], 'no_files'],
  ['only programs', [titled('install.sh')], 'unsafe_file_type'],
  ['only pickles', [titled('weights.pt')], 'unsafe_file_type'],
  ['a file outside of its folder', [titled('../x.gguf')], 'bad_source'],
  ['two files of one name', [titled('x.gguf'), titled('x.gguf', text('b'))], 'bad_source'],
  [
    'a digest of another kind',
    [{ ...titled('x.gguf'), digest: 'md5:00' }],
    'upstream_invalid_answer',
  ],
] as const) {
  test(`a manifest with ${name} is rejected`, async () => {
    const registry = serve(layers)
    expect(await refusalOf(latest(registry))).toStartWith(code)
  })
}

test('invalid and missing references are reported', async () => {
  const registry = serve([titled('model.gguf')])
  const { host } = registry
  for (const reference of [
    ...['', 'model', 'library/model', 'library/model:latest', `${host}`, `${host}/`],
    ...[`${host}/UPPER:tag`, `${host}/../x:tag`, `${host}/a b:tag`, `${host}/a:b:c`],
    ...[`${host}/a@sha512:00`, `user@${host}/a:b`, `${host}?x/a:b`, `${host}#x/a:b`],
  ]) {
    expect(await refusalOf(source(reference))).toStartWith('bad_source')
  }
  expect(await refusalOf(source(`${host}/library/model:other`))).toStartWith('not_found')
  expect(await refusalOf(source('registry.example/a/b'))).toStartWith('host_not_allowed')
})
