import { expect, test } from 'bun:test'
import { defaultName } from '#installer/names.ts'
import { readInstall } from '#installer/schema.ts'

/** What "model" means when no source is given. */

const digest = `sha256:${'9f2c41d7abcd'.padEnd(64, '0')}`
const oci = (reference: string) => ({ kind: 'oci', reference })
const hub = (repository: string, files: string[] = []) => ({
  kind: 'hub',
  repository,
  revision: 'main',
  files,
})

test.each<[string, object, string]>([
  [
    'registry.ollama.ai/library/llama3.2:1b',
    oci('registry.ollama.ai/library/llama3.2:1b'),
    'llama3.2-1b',
  ],
  ['ghcr.io/org/tiny', oci('ghcr.io/org/tiny'), 'org/tiny'],
  ['ghcr.io/org/tiny:v1', oci('ghcr.io/org/tiny:v1'), 'org/tiny-v1'],
  [`ghcr.io/org/tiny@${digest}`, oci(`ghcr.io/org/tiny@${digest}`), 'org/tiny-9f2c41d7abcd'],
  [`ghcr.io/tiny@${digest}`, oci(`ghcr.io/tiny@${digest}`), 'tiny-9f2c41d7abcd'],
  ['oci://ghcr.io/tiny', oci('ghcr.io/tiny'), 'tiny'],
  ['docker://docker.io/ai/smollm2:latest', oci('docker.io/ai/smollm2:latest'), 'ai/smollm2'],
  ['localhost:5000/tiny', oci('localhost:5000/tiny'), 'tiny'],
  ['10.0.0.5:5000/a/b:c', oci('10.0.0.5:5000/a/b:c'), 'a/b-c'],
  ['hf.co/org/Tiny-GGUF', hub('org/Tiny-GGUF'), 'org/Tiny-GGUF'],
  ['hf.co/org/Tiny-GGUF:latest', hub('org/Tiny-GGUF'), 'org/Tiny-GGUF'],
  ['hf.co/org/Tiny-GGUF:Q4_K_M', hub('org/Tiny-GGUF', ['*[qQ]4_[kK]_[mM]*.gguf']), 'org/Tiny-GGUF'],
  ['oci://huggingface.co/org/Tiny:q8_0', hub('org/Tiny', ['*[qQ]8_0*.gguf']), 'org/Tiny'],
  ['org/tiny-gguf', hub('org/tiny-gguf'), 'org/tiny-gguf'],
  ['org.name/tiny.gguf', hub('org.name/tiny.gguf'), 'org.name/tiny.gguf'],
  ['gpt2', hub('gpt2'), 'gpt2'],
])('%s', (model, source, name) => {
  const request = readInstall({ model })
  expect(request.source).toEqual(source as never)
  expect(request.model).toBe(name)
  expect(defaultName(request.source)).toBe(name)
})

test('the glob of a tag selects the quantisation, in any case', () => {
  const { source } = readInstall({ model: 'hf.co/org/tiny:q4_K_m' })
  const glob = new Bun.Glob('files' in source ? (source.files[0] ?? '') : '')
  expect(glob.match('Tiny-Q4_K_M.gguf')).toBe(true)
  expect(glob.match('tiny-q4_k_m-00001-of-00002.gguf')).toBe(true)
  expect(glob.match('Tiny-Q4_K_S.gguf')).toBe(false)
})

test.each([
  'llama3.2:1b',
  'library/llama3.2:1b',
  'ghcr.io/Org/tiny:v1',
  'ghcr.io/a@sha256:1',
  'oci://tiny',
])('%s is refused with the form of a reference', (model) => {
  expect(() => readInstall({ model })).toThrow('registry.ollama.ai/library/llama3.2:1b')
})
