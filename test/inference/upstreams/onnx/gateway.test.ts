import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asRecord } from '#lib/json.ts'
import { writeInstalledModel } from '#test/support/embedding/installed-model.ts'
import { wordScorer, wordTokenizer } from '#test/support/embedding/tiny-models.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { childrenOf, killProcess } from '#test/support/process.ts'

/** A folder with multilingual-e5-small and its runtime, as `.ci/embedding` installs them. */
const installed = process.env['SLUICE_TEST_EMBEDDING']
if (installed === undefined) console.warn('SLUICE_TEST_EMBEDDING names no folder: nothing embeds')

const words = ['cat', 'dog', 'fish', 'house']

describe.skipIf(installed === undefined)('a gateway with an embedding model', () => {
  let gateway: Gateway
  const models = mkdtempSync(join(tmpdir(), 'sluice-models-'))
  beforeAll(async () => {
    const folder = join(installed ?? '', 'models')
    for (const name of readdirSync(folder)) symlinkSync(join(folder, name), join(models, name))
    // A document about cats is relevant, one about dogs is not.
    writeInstalledModel(models, 'house/reranker', {
      'model.onnx': wordScorer([0, 0, 0, 0, 5, -5, 1, 0]),
      'tokenizer.json': JSON.stringify(wordTokenizer(words)),
      'config.json': JSON.stringify({ architectures: ['XForSequenceClassification'] }),
    })
    writeInstalledModel(models, 'house/broken', {
      'model.onnx': 'no model',
      'tokenizer.json': JSON.stringify(wordTokenizer(words)),
      'config.json': JSON.stringify({ architectures: ['BertModel'] }),
    })
    gateway = await startGateway({
      environment: { SLUICE_MODELS: models, SLUICE_ONNX_PACKAGE: join(installed ?? '', 'onnx') },
      retrieval: { rerankerModel: 'house/reranker' },
    })
    await gateway.deps.catalogue.asked()
  })
  afterAll(async () => {
    await gateway.stop()
    rmSync(models, { recursive: true, force: true })
  })

  async function post(path: string, body: unknown) {
    const response = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await gateway.token()}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    })
    return asRecord(await response.json())
  }

  async function vectorsOf(...input: string[]): Promise<number[][]> {
    const { data } = await post('/v1/embeddings', { model: 'local', input })
    return (Array.isArray(data) ? data : []).map((one) => asRecord(one)['embedding'] as number[])
  }

  const similarity = (one: number[] = [], other: number[] = []) =>
    one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0)

  /** Processes of models; the command line does not tell which. */
  function encoders(): readonly number[] {
    return childrenOf(process.pid).filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('run-encoder'),
    )
  }

  test('texts of one meaning are near each other, also in different languages', async () => {
    const [key, german, other] = await vectorsOf(
      'The notice period is three months.',
      'Die Kündigungsfrist beträgt drei Monate.',
      'Penguins cannot fly, but they swim well.',
    )
    expect(key).toHaveLength(384)
    expect(similarity(key, key)).toBeCloseTo(1, 3)
    expect(similarity(key, german)).toBeGreaterThan(similarity(key, other) + 0.1)
  })

  test('a prefix that the client adds is not added again', async () => {
    const [plain, prefixed] = await vectorsOf('a text', 'passage: a text')
    expect(similarity(plain, prefixed)).toBeCloseTo(1, 3)
  })

  test('the end of a long text counts too', async () => {
    const filler = 'The weather was neither good nor bad on that day. '.repeat(60)
    const [plain, longer] = await vectorsOf(filler, `${filler}${'Penguins swim well. '.repeat(60)}`)
    expect(similarity(plain, longer)).toBeLessThan(0.99)
  })

  test('new collections use it, and a search names it', async () => {
    const collection = await post('/v1/collections', { name: 'contracts' })
    expect(collection['index']).toMatchObject({
      embedding_model: 'Xenova/multilingual-e5-small',
      dims: 384,
    })
    const search = { query: 'anything', rerank: false }
    const { retrieval } = await post('/v1/collections/contracts/search', search)
    expect(asRecord(retrieval)['indexes']).toMatchObject([
      { model: 'Xenova/multilingual-e5-small' },
    ])
    expect(retrieval).toMatchObject({ reranker: null })
    const reranked = await post('/v1/collections/contracts/search', { query: 'anything' })
    expect(reranked['retrieval']).toMatchObject({ reranker: 'house/reranker' })
  })

  test('a cross-encoder orders documents by the pair of query and document', async () => {
    const documents = ['dog dog', 'house', 'cat fish']
    const { results, usage } = await post('/v1/rerank', { query: 'dog', documents })
    const order = (Array.isArray(results) ? results : []).map((one) => asRecord(one)['index'])
    expect(order).toEqual([2, 1, 0])
    expect(results).toMatchObject([
      { relevance_score: expect.closeTo(1 / (1 + Math.exp(-6)), 5) },
      {},
      {},
    ])
    // Each pair has the query and three special tokens.
    expect(usage).toEqual({ total_tokens: 5 + 3 * 4 })
  })

  test('each model has its mode', async () => {
    const wrong = await post('/v1/embeddings', { model: 'house/reranker', input: 'text' })
    expect(asRecord(wrong['error'])['code']).toBe('model_mode_mismatch')
    const shorter = { model: 'local', input: 'text', dimensions: 12 }
    expect(asRecord((await post('/v1/embeddings', shorter))['error'])['param']).toBe('dimensions')
  })

  test('files that are no model are an error that names no folder', async () => {
    const { error } = await post('/v1/embeddings', { model: 'house/broken', input: 'text' })
    expect(asRecord(error)['message']).toBe('The model files cannot be loaded.')
  })

  test('a killed process is replaced, and an idle one ends before its model is deleted', async () => {
    await vectorsOf('before')
    expect(encoders().length).toBeGreaterThan(0)
    for (const pid of encoders()) killProcess(pid)
    await eventually('it embeds again', async () => (await vectorsOf('after'))[0]?.length === 384)
    // Idle models are unloaded, so that their files can be deleted.
    expect(await gateway.deps.usesOfModel('Xenova/multilingual-e5-small')).toEqual([])
    await eventually('no process has it', async () => encoders().length <= 1)
  })

  test('streams go on while the passages of 200 pages are embedded', async () => {
    // A new collection waits for its model, but not as long as a busy machine may need to load one.
    await vectorsOf('loaded')
    await post('/v1/collections', { name: 'manuals' })
    const sentence = 'The pump is switched off before its cover is opened, and cools for an hour. '
    const pages = Array.from(
      { length: 200 },
      (_, page) => `# Page ${page}\n\n${sentence.repeat(30)}`,
    )
    const form = new FormData()
    form.set('file', new File([pages.join('\n\n')], 'manual.md', { type: 'text/markdown' }))
    form.set('collections', '["manuals"]')
    const uploaded = await gateway.request('/v1/files', { method: 'POST', body: form })
    expect(uploaded.status).toBe(201)
    const path = `/v1/files/${asRecord(await uploaded.json())['id']}`
    const stateOf = async () => {
      const { retrieval } = asRecord(await (await gateway.request(path)).json())
      const { state, error } = asRecord(retrieval)
      expect(error).toBeNull()
      return state
    }
    await eventually('it is being embedded', async () => (await stateOf()) === 'embedding')
    const stream = { model: 'demo', input: 'Say a few words.', stream: true }
    let events = 0
    for (let answer = 0; answer < 8; answer++) {
      const response = await gateway.post('/v1/responses', stream)
      events += (await response.text()).split('\nevent: ').length
    }
    expect(events).toBeGreaterThan(80)
    // A loop that embedded a batch at each turn would be done by now.
    expect(await stateOf()).toBe('embedding')
    await gateway.request(path, { method: 'DELETE' })
  })
})
