import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { loadConfig } from '#config/load.ts'
import { llamaFolder } from '#models/llama-config.ts'
import { configuredUpstreams } from '#models/upstreams.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function load(toml: string) {
  const path = join(folder, `${crypto.randomUUID()}.toml`)
  writeFileSync(path, toml)
  return loadConfig({ SLUICE_CONFIG: path })
}

/** Without the other models of this machine. */
const upstreamsOf = (toml: string) =>
  configuredUpstreams(load(`${toml}\n[onnx]\nenabled = false\n[flite]\nenabled = false`)).map(
    ({ upstream }) => `${upstream.name} (${upstream.kind})`,
  )

const server = '[[upstream]]\nname = "server"\nurl = "http://127.0.0.1:1/v1"\n'

describe('local models', () => {
  test('are offered by default, beside the demo and configured upstreams', () => {
    expect(upstreamsOf('')).toEqual(['demo (demo)', 'local (llama)'])
    expect(upstreamsOf(server)).toEqual(['server (chat)', 'local (llama)'])
  })

  test('are not offered when disabled', () => {
    expect(upstreamsOf('[llama]\nenabled = false')).toEqual(['demo (demo)'])
    expect(upstreamsOf(server.replace('server', 'local'))).toEqual(['local (chat)'])
  })

  test('can be an upstream with another name, which counts tokens with its own tokenizer', () => {
    const toml = '[[upstream]]\nname = "mine"\napi = "llama"\n'
    expect(upstreamsOf(toml)).toEqual(['mine (llama)'])
    const [mine] = configuredUpstreams(load(toml))
    expect(mine?.upstream.quirks.tokenCounter).toBe('native')
    const [, local] = configuredUpstreams(load(''))
    expect(local?.upstream.quirks.tokenCounter).toBe('native')
  })

  test('can have configured names', () => {
    const model = '[[model]]\nname = "house"\nupstreams = ["local"]\nupstream_model = "org/name"\n'
    expect(load(model).model[0]?.upstreams).toEqual(['local'])
    expect(() => load(`${model}[llama]\nenabled = false`)).toThrow('no upstream "local"')
  })
})

test('the runtime is in the data folder, or where the configuration says', () => {
  expect(llamaFolder({ data: './kept', llama: {} })).toBe(resolve('kept/llama'))
  expect(llamaFolder({ data: './kept', llama: { packageFolder: '/opt/llama' } })).toBe('/opt/llama')
})

test.each([
  ['sequences_max = 0', 'sequences_max'],
  ['sequences_max = 65', 'sequences_max'],
  ['context_tokens_max = 255', 'context_tokens_max'],
  ['threads = -1', 'threads'],
  ['memory_bytes_max = 0', 'memory_bytes_max'],
  ['seed = 4294967296', 'seed'],
  ['gpu = "cuda"', 'gpu'],
  ['url = "x"', 'url'],
])('%s is refused', (line, key) => {
  expect(() => load(`[llama]\n${line}`)).toThrow(`llama.${key}`)
})
