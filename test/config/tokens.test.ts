import { expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, loadConfig } from '#config/load.ts'
import { writeWordTokenizer } from '#test/support/tokenizer-file.ts'

const file = (tokenizer: string) => `
[[upstream]]
name = "gpu"
url = "http://gpu:8000/v1"
token_counter = "vllm"

[[model]]
name = "house-model"
upstreams = ["gpu"]
tokenizer = "${tokenizer}"

[tokens]
tokenizer = "none"
patience_ms = 50
`

function load(text: string) {
  const path = join(mkdtempSync(join(tmpdir(), 'sluice-config-')), 'sluice.toml')
  writeFileSync(path, text)
  return loadConfig({ SLUICE_CONFIG: path, JWT_SECRET: 'a-secret-of-at-least-32-characters-here' })
}

test('token counting and its timeouts can be configured', () => {
  const path = writeWordTokenizer()
  const config = load(file(path))
  expect(config.upstream[0]?.tokenCounter).toBe('vllm')
  expect(config.model[0]?.tokenizer).toBe(path)
  expect(config.tokens).toMatchObject({ tokenizer: 'none', patienceMs: 50, upstreamMs: 300 })
})

test('a missing tokenizer file is refused at start', () => {
  expect(() => load(file('/nowhere/tokenizer.json'))).toThrow(ConfigError)
  expect(() => load(file('/nowhere/tokenizer.json'))).toThrow(
    'model.0.tokenizer: there is no file /nowhere/tokenizer.json.',
  )
})
