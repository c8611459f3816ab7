import { afterAll, beforeAll, expect, test } from 'bun:test'
import { fetchModelList } from '#inference/model-list.ts'
import type { Upstream, UpstreamModel } from '#inference/upstream.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { defaultQuirks } from '#test/support/generation.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { fetchTransport } from '#test/support/transport.ts'

let replay: ReplayUpstream
beforeAll(async () => {
  replay = await startReplayUpstream({ body: '' })
})
afterAll(() => replay.stop())

function list(): Promise<readonly UpstreamModel[]> {
  const upstream: Upstream = {
    name: 'replay',
    kind: 'chat',
    baseUrl: replay.baseUrl,
    key: 'secret',
    headers: { 'x-team': 'blue' },
    quirks: defaultQuirks,
  }
  return fetchModelList({
    upstream,
    transport: fetchTransport,
    signal: new AbortController().signal,
    limits: { eventBytesMax: 1_000_000, toolArgumentCharsMax: 1_000_000 },
  })
}

async function failure(): Promise<AppError> {
  try {
    await list()
  } catch (error) {
    return toAppError(error)
  }
  throw new Error('it did not fail')
}

const answerWith = (body: unknown, status = 200) =>
  replay.answer({
    status,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })

test('reads the model metadata of each kind of server', async () => {
  answerWith({
    object: 'list',
    data: [
      { id: 'openai', object: 'model', created: 1_700_000_000, owned_by: 'openai' },
      {
        id: 'vllm',
        object: 'model',
        created: 1_700_000_001,
        owned_by: 'vllm',
        max_model_len: 32_768,
      },
      { id: 'llama', owned_by: 'llamacpp', meta: { n_ctx_train: 131_072 } },
      { id: 'router', context_length: 200_000 },
      { id: 'odd', created: 'yesterday', owned_by: 7, max_model_len: -1, meta: null },
    ],
  })
  expect(await list()).toEqual([
    { id: 'openai', created: 1_700_000_000, ownedBy: 'openai', contextWindow: null },
    { id: 'vllm', created: 1_700_000_001, ownedBy: 'vllm', contextWindow: 32_768 },
    { id: 'llama', created: null, ownedBy: 'llamacpp', contextWindow: 131_072 },
    { id: 'router', created: null, ownedBy: null, contextWindow: 200_000 },
    { id: 'odd', created: null, ownedBy: null, contextWindow: null },
  ])
  const sent = replay.requests.at(-1)
  expect(sent).toMatchObject({ method: 'GET', path: '/v1/models' })
  expect(sent?.headers).toMatchObject({ authorization: 'Bearer secret', 'x-team': 'blue' })
})

test('a bare array is accepted; entries without an id and duplicates are dropped', async () => {
  answerWith([{ id: 'a' }, { id: '' }, { name: 'b' }, null, 'c', { id: 'a' }])
  expect((await list()).map(({ id }) => id)).toEqual(['a'])
})

test('an empty list is empty', async () => {
  answerWith({ object: 'list', data: [] })
  expect(await list()).toEqual([])
})

test.each([['<html>'], [''], [{ object: 'list' }], [{ data: {} }]])(
  '%j is not a list',
  async (body) => {
    answerWith(body)
    expect((await failure()).kind).toBe('upstream_invalid_answer')
  },
)

test('an endless list is not read completely', async () => {
  answerWith(`{"data":[{"id":"${'x'.repeat(9_000_000)}"}]}`)
  expect((await failure()).kind).toBe('upstream_invalid_answer')
})

test('an error status fails with the message of the upstream', async () => {
  answerWith({ error: { message: 'Loading model.' } }, 503)
  expect(await failure()).toMatchObject({ kind: 'upstream_overloaded', message: 'Loading model.' })
})

test('messages of an upstream are redacted', async () => {
  const message = `key secret at ${replay.baseUrl} is wrong`
  replay.answer({ status: 500, body: JSON.stringify({ error: { message } }) })
  await expect(list()).rejects.toMatchObject({ message: 'key [hidden] at [hidden] is wrong' })
})
