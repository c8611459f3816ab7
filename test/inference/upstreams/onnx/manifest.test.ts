import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readManifest } from '#inference/upstreams/onnx/manifest.ts'

const root = mkdtempSync(join(tmpdir(), 'sluice-manifest-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

async function manifestOf(name: string, contents: Readonly<Record<string, unknown>>) {
  const folder = mkdtempSync(join(root, 'model-'))
  const given = { 'tokenizer.json': {}, ...contents }
  const files = Object.entries(given).map(([path, content]) => {
    const place = join(folder, path)
    mkdirSync(dirname(place), { recursive: true })
    writeFileSync(place, JSON.stringify(content))
    return [path, place] as const
  })
  return readManifest(name, new Map(files))
}

const bert = { architectures: ['BertModel'], max_position_embeddings: 512 }
const pooling = (mode: string) => ({ '1_Pooling/config.json': { [`pooling_mode_${mode}`]: true } })

describe('the manifest of a model', () => {
  test('adds the prefixes that a family was trained with', async () => {
    expect(await manifestOf('Xenova/multilingual-e5-small', { 'config.json': bert })).toEqual({
      task: 'embed',
      pooling: 'mean',
      normalize: true,
      queryPrefix: 'query: ',
      passagePrefix: 'passage: ',
      tokensMax: 512,
    })
  })

  test.each([
    ['mean_tokens', 'mean'],
    ['cls_token', 'cls'],
    ['lasttoken', 'last'],
  ])('reads the pooling %s and the prompts of sentence-transformers', async (mode, expected) => {
    const prompts = { query: 'q: ', document: 'd: ' }
    const manifest = await manifestOf('org/model', {
      'config.json': { architectures: ['OtherModel'] },
      'config_sentence_transformers.json': { prompts },
      'sentence_bert_config.json': { max_seq_length: 128 },
      ...pooling(mode),
    })
    expect(manifest).toMatchObject({
      task: 'embed',
      pooling: expected,
      queryPrefix: 'q: ',
      passagePrefix: 'd: ',
      tokensMax: 128,
    })
  })

  test('sluice.json takes precedence', async () => {
    const own = { task: 'embed', pooling: 'last', query_prefix: '', tokens_max: 64 }
    const given = { 'config.json': bert, 'sluice.json': own, ...pooling('mean_tokens') }
    expect(await manifestOf('org/e5', given)).toMatchObject({
      pooling: 'last',
      queryPrefix: '',
      passagePrefix: 'passage: ',
      tokensMax: 64,
    })
  })

  test('an invalid sluice.json is an error', async () => {
    const given = { 'config.json': bert, 'sluice.json': { pooling: 'middle' } }
    expect(manifestOf('org/model', given)).rejects.toThrow('sluice.json')
  })

  test.each([
    ['a classifier of one class', { architectures: ['XForSequenceClassification'] }, 'rerank'],
    [
      'one named class',
      { architectures: ['XForSequenceClassification'], id2label: { 0: 'LABEL_0' } },
      'rerank',
    ],
    [
      'two classes',
      { architectures: ['XForSequenceClassification'], id2label: { 0: 'no', 1: 'yes' } },
      undefined,
    ],
    ['a speech model', { architectures: ['WhisperForConditionalGeneration'] }, undefined],
    ['no architecture', {}, undefined],
  ])('the task of %s', async (_, config, task) => {
    expect((await manifestOf('org/model', { 'config.json': config }))?.task).toBe(task as never)
  })
})
