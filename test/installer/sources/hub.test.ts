import { afterEach, expect, test } from 'bun:test'
import {
  commit,
  gitSha1Of,
  type HubOptions,
  type HubServer,
  sha256Of,
  startHub,
} from './hub-server.ts'
import { pathsOf, refusalOf, resolveSource } from './resolve-source.ts'

const weights = new TextEncoder().encode('GGUF and so on')
const settingsText = new TextEncoder().encode('{"a":1}')
const usual: HubOptions['files'] = {
  'config.json': { content: settingsText },
  'model.safetensors': { content: weights, isLarge: true },
  '.gitattributes': { content: settingsText },
  'modeling.py': { content: settingsText },
  'pytorch_model.bin': { content: weights, isLarge: true },
  LICENSE: { content: settingsText },
}
const servers: HubServer[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})

function serve(options: Partial<HubOptions> = {}): HubServer {
  const hub = startHub({ files: usual, ...options })
  servers.push(hub)
  return hub
}

function source(
  files: readonly string[] = [],
  more: { repository?: string; revision?: string } = {},
) {
  return { kind: 'hub', repository: 'org/model', revision: 'main', files, ...more } as const
}

test('a branch resolves to its commit, with the hashes that the hub publishes', async () => {
  const hub = serve()
  const { resolved, lines } = await resolveSource(source(), { settings: { hubUrl: `${hub.url}/` } })
  expect(resolved).toEqual({
    revision: commit,
    files: [
      {
        path: 'config.json',
        bytes: settingsText.length,
        sha256: null,
        gitSha1: gitSha1Of(settingsText),
        from: { url: `${hub.url}/org/model/resolve/${commit}/config.json` },
      },
      {
        path: 'model.safetensors',
        bytes: weights.length,
        sha256: sha256Of(weights),
        from: { url: `${hub.url}/org/model/resolve/${commit}/model.safetensors` },
      },
      {
        path: 'LICENSE',
        bytes: settingsText.length,
        sha256: null,
        gitSha1: gitSha1Of(settingsText),
        from: { url: `${hub.url}/org/model/resolve/${commit}/LICENSE` },
      },
    ],
  })
  expect(lines.join()).toContain('Skipping 3 files')
})

test('the file list is read to its last page', async () => {
  const files = Object.fromEntries(
    Array.from({ length: 25 }, (_, index) => [`part-${index}.json`, { content: settingsText }]),
  )
  const hub = serve({ files, entriesPerPage: 10 })
  const settings = { hubUrl: hub.url }
  expect(pathsOf(await resolveSource(source(), { settings }))).toEqual(Object.keys(files))
  const few = await refusalOf(source(), { settings: { ...settings, filesMax: 24 } })
  expect(few).toStartWith('bad_source')
})

test('a mirror without a tree listing is asked for each file', async () => {
  const hub = serve({ hasTree: false, storeUrl: 'https://store.example' })
  const { resolved } = await resolveSource(source(), { settings: { hubUrl: hub.url } })
  const [first, second] = resolved.files
  expect(first).toMatchObject({ bytes: settingsText.length, gitSha1: gitSha1Of(settingsText) })
  expect(second).toMatchObject({ bytes: weights.length, sha256: sha256Of(weights) })
  const asked = hub.questions.filter(({ path }) => path.includes('/resolve/'))
  expect(asked.map(({ method }) => method)).toEqual(['HEAD', 'HEAD', 'HEAD'])
})

test('globs select files', async () => {
  const hub = serve()
  const settings = { hubUrl: hub.url }
  const chosen = async (...globs: string[]) =>
    pathsOf(await resolveSource(source(globs), { settings }))
  expect(await chosen('*.safetensors', '*.json')).toEqual(['config.json', 'model.safetensors'])
  expect(await chosen('config.json')).toEqual(['config.json'])
  expect(await chosen('*')).toEqual(['config.json', 'model.safetensors', 'LICENSE'])
  const unmatched = await refusalOf(source(['*.gguf', '*.bin.txt']), { settings })
  expect(unmatched).toBe('no_files: No file of the source matches *.gguf, *.bin.txt.')
  expect(await refusalOf(source(['*.bin']), { settings })).toStartWith('unsafe_file_type')
  expect(await refusalOf(source(['modeling.py']), { settings })).toStartWith('unsafe_file_type')
  expect(await refusalOf(source(['*.json', 'x'.repeat(300)]), { settings })).toStartWith(
    'bad_source',
  )
})

test('pickles require allow_unsafe, and programs are never installed', async () => {
  const hub = serve()
  const more = { settings: { hubUrl: hub.url }, allowsUnsafe: true }
  expect(pathsOf(await resolveSource(source(['*.bin']), more))).toEqual(['pytorch_model.bin'])
  expect(await refusalOf(source(['modeling.py']), more)).toStartWith('unsafe_file_type')
})

test('several quantisations require a choice; shards and companions do not', async () => {
  const large = { content: weights, isLarge: true }
  const files = {
    'model-Q4_K_M.gguf': large,
    'model-Q8_0-00001-of-00002.gguf': large,
    'model-Q8_0-00002-of-00002.gguf': large,
    'mmproj-model-f16.gguf': large,
    'README.md': { content: settingsText },
  }
  const hub = serve({ files })
  const settings = { hubUrl: hub.url }
  const refusal = await refusalOf(source(), { settings })
  expect(refusal).toStartWith('choose_files')
  expect(refusal).toContain('model-Q4_K_M.gguf')
  expect(refusal).toContain('model-Q8_0-*-of-00002.gguf')
  expect(refusal).not.toContain('mmproj')
  const chosen = await resolveSource(source(['model-Q8_0-*-of-00002.gguf']), { settings })
  expect(pathsOf(chosen)).toHaveLength(2)
  const { 'model-Q4_K_M.gguf': _, ...one } = files
  const single = serve({ files: one })
  const all = await resolveSource(source(), { settings: { hubUrl: single.url } })
  expect(pathsOf(all)).toHaveLength(4)
})

test('a gated repository requires a token, which only the hub receives', async () => {
  const gated = serve({ gated: 'manual' })
  expect(await refusalOf(source(), { settings: { hubUrl: gated.url } })).toStartWith(
    'source_auth_required',
  )
  const closed = serve({ token: 'hf_secret', gated: 'manual' })
  const settings = { hubUrl: closed.url }
  expect(await refusalOf(source(), { settings })).toStartWith('source_auth_required')
  const named = { settings: { ...settings, hubToken: 'hf_secret' } }
  expect(pathsOf(await resolveSource(source(['config.json']), named))).toEqual(['config.json'])
  const other = serve()
  const otherSource = { kind: 'url', url: `${other.url}/x.json`, sha256: null } as const
  await refusalOf(otherSource, named)
  expect(other.questions.map(({ token }) => token)).not.toContain('Bearer hf_secret')
})

test('missing models and invalid names are reported', async () => {
  const hub = serve()
  const settings = { hubUrl: hub.url }
  const refuse = (more: { repository?: string; revision?: string }) =>
    refusalOf(source([], more), { settings })
  const absent = await refuse({ repository: 'org/other' })
  expect(absent).toStartWith('not_found')
  expect(absent).toEndWith(' does not have the repository org/other at main.')
  expect(await refuse({ revision: 'refs/pr/1' })).toStartWith('not_found')
  for (const repository of ['', '../x', 'a/b/c', 'org/', 'org/..', 'org/mo del', 'a?b']) {
    expect(await refuse({ repository })).toStartWith('bad_source')
  }
  expect(await refuse({ revision: '' })).toStartWith('bad_source')
  const empty = serve({ files: {} })
  expect(await refusalOf(source(), { settings: { hubUrl: empty.url } })).toStartWith('no_files')
})

for (const path of [
  '../config.json',
  '/etc/x.json',
  'a\\b.json',
  'a/./b.json',
  'con.json',
  'a\u202e.json',
  `${'d/'.repeat(9)}x.json`,
]) {
  test(`a file with the path ${JSON.stringify(path)} is rejected`, async () => {
    const hub = serve({ files: { ...usual, [path]: { content: settingsText } } })
    const settings = { hubUrl: hub.url }
    expect(pathsOf(await resolveSource(source(), { settings }))).not.toContain(path)
    const wanted = await refusalOf(source([path]), { settings })
    expect(wanted).toStartWith('bad_source')
  })
}

test('files with conflicting paths are rejected', async () => {
  const two = { 'a.json': { content: settingsText }, 'A.json': { content: settingsText } }
  const same = serve({ files: two })
  expect(await refusalOf(source(), { settings: { hubUrl: same.url } })).toStartWith('bad_source')
  const inside = { 'a.json': { content: settingsText }, 'a.json/b.json': { content: settingsText } }
  const folder = serve({ files: inside })
  expect(await refusalOf(source(), { settings: { hubUrl: folder.url } })).toStartWith('bad_source')
})

test('an invalid or unreachable hub is an upstream error', async () => {
  const answers = ['<html>', '[]', '{"sha":"main"}', '{"sha":"../../x"}']
  for (const text of answers) {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(text) })
    const settings = { hubUrl: `http://127.0.0.1:${server.port}` }
    expect(await refusalOf(source(), { settings })).toStartWith('upstream_invalid_answer')
    await server.stop(true)
  }
  const refusal = await refusalOf(source(), { settings: { hubUrl: 'http://127.0.0.1:1' } })
  expect(refusal).toStartWith('upstream_unreachable')
  const silent = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise(() => {}) })
  const settings = { hubUrl: `http://127.0.0.1:${silent.port}`, answerMs: 50 }
  expect(await refusalOf(source(), { settings })).toStartWith('upstream_first_event_timeout')
  await silent.stop(true)
})
