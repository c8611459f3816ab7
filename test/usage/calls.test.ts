import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { createMetricRegistry } from '#telemetry/metrics.ts'
import { tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSpeech, pcmBytes } from '#test/support/speech-client.ts'
import { spokenFile } from '#test/support/spoken-files.ts'
import { answer } from './reporting-upstream.ts'

/** What the ledger holds of each kind of call. */

let gateway: Gateway
let upstream: Bun.Server<undefined>

beforeAll(async () => {
  upstream = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: answer })
  gateway = await startGateway({
    upstream: [
      { name: 'dead', url: 'http://127.0.0.1:1/v1' },
      {
        name: 'counting',
        url: `http://127.0.0.1:${upstream.port}/v1`,
        models: ['counted'],
        tokenCounter: 'vllm',
      },
      { name: 'gpu', url: `http://127.0.0.1:${upstream.port}/v1`, models: ['plain'] },
    ],
    model: [
      { name: 'chat', upstreams: ['gpu'], upstreamModel: 'real', aliases: ['old-chat'] },
      { name: 'big', upstreams: ['dead'], fallbacks: ['chat'] },
      { name: 'vectors', mode: 'embed', upstreams: ['gpu'] },
      { name: 'order', mode: 'rerank', upstreams: ['gpu'] },
    ],
    retry: { retriesMax: 1 },
    prices: {
      chat: { input_per_million: 2, cached_input_per_million: 1, output_per_million: 10 },
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop(true)
})

let users = 0
/** A user whose ledger is empty, so that the records of one test are all of them. */
async function newUser() {
  const subject = `user-${users++}`
  const headers = { authorization: `Bearer ${await gateway.token(['users'], subject)}` }
  const post = (path: string, body: unknown, signal?: AbortSignal) =>
    gateway.request(path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    })
  const records = async (count: number): Promise<Record<string, unknown>[]> => {
    let found: Record<string, unknown>[] = []
    await eventually(`${count} records`, async () => {
      const response = await gateway.request('/v1/usage/records', { headers })
      found = Object(await response.json()).data
      return found.length >= count
    })
    expect(found).toHaveLength(count)
    return found.toReversed()
  }
  return { id: userIdOf(subject), subject, headers, post, records }
}

const chatTokens = {
  input_tokens: 100,
  cached_tokens: 60,
  output_tokens: 20,
  reasoning_tokens: 5,
  estimated: false,
}

describe('a record', () => {
  test('of a stored response has its id, the alias and the catalogue name', async () => {
    const user = await newUser()
    const response = await user.post('/v1/responses', { model: 'old-chat', input: 'hello' })
    const { id } = Object(await response.json())
    expect(await user.records(1)).toMatchObject([
      {
        kind: 'generation',
        user_id: user.id,
        key_id: null,
        surface: 'responses',
        model: 'chat',
        requested_model: 'old-chat',
        upstream: 'gpu',
        outcome: 'completed',
        request_id: response.headers.get('x-request-id'),
        response_id: id,
        ...chatTokens,
        // 40 tokens at 2, 60 at 1 and 20 at 10 per million.
        cost: 0.000_34,
      },
    ])
  })

  test('of a streamed message has no response id', async () => {
    const user = await newUser()
    const message = {
      model: 'chat',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hello' }],
    }
    await (await user.post('/compat/v1/messages', { ...message, stream: true })).text()
    expect(await user.records(1)).toMatchObject([
      { surface: 'messages', model: 'chat', response_id: null, ...chatTokens },
    ])
  })

  test('of an API key has its id, also of a background response', async () => {
    const user = await newUser()
    const created = await user.post('/v1/api-keys', { name: 'k' })
    const { id, key } = Object(await created.json())
    const asKey = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    for (const background of [false, true]) {
      const body = JSON.stringify({ model: 'chat', input: 'hello', background, store: background })
      const response = await gateway.request('/v1/responses', {
        method: 'POST',
        headers: asKey,
        body,
      })
      expect(response.status).toBe(200)
    }
    const records = await user.records(2)
    expect(records.map((record) => record['key_id'])).toEqual([id, id])
    const table = await gateway.request('/v1/usage?group_by=key', { headers: user.headers })
    expect(Object(await table.json()).data).toMatchObject([
      { key_id: id, key_name: 'k', requests: 2, input_tokens: 200 },
    ])
  })

  test('of an agent has its id', async () => {
    const user = await newUser()
    const created = await user.post('/v1/agents', {
      name: 'helper',
      model: 'chat',
      instructions: 'Help.',
    })
    const { id, model_id: model } = Object(await created.json())
    await user.post('/v1/responses', { model, input: 'hello', store: false })
    expect(await user.records(1)).toMatchObject([
      { agent_id: id, model: 'chat', requested_model: model },
    ])
  })

  test('of a fallback has the model that served it, and its price', async () => {
    const user = await newUser()
    await user.post('/v1/responses', { model: 'big', input: 'hello', store: false })
    expect(await user.records(1)).toMatchObject([
      { model: 'chat', requested_model: 'big', upstream: 'gpu', retries: 1, cost: 0.000_34 },
    ])
  })

  test('exists for each call of a request', async () => {
    const user = await newUser()
    const schema = { type: 'object', properties: {}, required: [], additionalProperties: false }
    const format = { type: 'json_schema', name: 'answer', strict: true, schema }
    const response = await user.post('/v1/responses', {
      model: 'chat',
      input: 'hello',
      store: false,
      text: { format },
    })
    const records = await user.records(2)
    const requestId = response.headers.get('x-request-id')
    expect(records.map((record) => record['request_id'])).toEqual([requestId, requestId])
  })

  test('of a failed call has the kind of its error', async () => {
    const user = await newUser()
    expect((await user.post('/v1/responses', { model: 'plain', input: 'refuse' })).ok).toBe(false)
    const [record] = await user.records(1)
    expect(record).toMatchObject({ outcome: 'failed', input_tokens: 0, estimated: false })
    expect(record?.['error']).toBeString()
  })

  test('of a cancelled stream has estimated tokens', async () => {
    const user = await newUser()
    const abort = new AbortController()
    const body = { model: 'chat', input: `endless ${'x'.repeat(400)}`, store: false, stream: true }
    const response = await user.post('/v1/responses', body, abort.signal)
    const reader = response.body?.getReader()
    await reader?.read()
    abort.abort()
    await reader?.read().catch(() => {})
    const [record] = await user.records(1)
    expect(record).toMatchObject({ outcome: 'cancelled', estimated: true, output_tokens: 13 })
    expect(Number(record?.['input_tokens'])).toBeGreaterThan(100)
  })

  test('of a token count by the upstream names it', async () => {
    const user = await newUser()
    const counted = await user.post('/v1/responses/input_tokens', {
      model: 'counted',
      input: 'count',
    })
    expect(Object(await counted.json()).input_tokens).toBe(42)
    expect(await user.records(1)).toMatchObject([
      {
        kind: 'token_count',
        model: 'counted',
        surface: 'responses',
        upstream: 'counting',
        cost: null,
      },
    ])
  })

  test('of embeddings and of a rerank has input tokens', async () => {
    const user = await newUser()
    await user.post('/v1/embeddings', { model: 'vectors', input: ['a', 'b'] })
    await user.post('/v1/rerank', { model: 'order', query: 'q', documents: ['a', 'b'] })
    expect(await user.records(2)).toMatchObject([
      { kind: 'embedding', model: 'vectors', input_tokens: 7, output_tokens: 0, surface: null },
      { kind: 'rerank', model: 'order', input_tokens: 9, output_tokens: 0 },
    ])
  })

  test('of embeddings without reported tokens has estimated ones', async () => {
    const user = await newUser()
    await user.post('/v1/embeddings', { model: 'vectors', input: ['x'.repeat(400)] })
    expect(await user.records(1)).toMatchObject([
      { kind: 'embedding', input_tokens: 100, estimated: true, cost: null },
    ])
  })

  test('of speech has the seconds of audio, live and from a file', async () => {
    const user = await newUser()
    const client = await openSpeech(gateway.port, { headers: user.headers })
    await client.start()
    client.sendAudio(pcmBytes(tone(2_000, 16_000)))
    await client.end()
    const form = new FormData()
    form.set('file', spokenFile([1]).file)
    form.set('model', 'stt')
    const transcribed = await gateway.request('/v1/audio/transcriptions', {
      method: 'POST',
      headers: user.headers,
      body: form,
    })
    expect(transcribed.status).toBe(200)
    const [live, file] = await user.records(2)
    expect(live).toMatchObject({
      kind: 'speech_session',
      model: 'demo (no words)',
      outcome: 'completed',
      audio_seconds: 2,
      input_tokens: 0,
    })
    expect(file).toMatchObject({
      kind: 'transcription',
      model: 'demo (no words)',
      requested_model: 'stt',
      outcome: 'completed',
    })
    expect(Number(file?.['audio_seconds'])).toBeGreaterThan(0)
  })

  test('holds nothing of the content', async () => {
    const user = await newUser()
    await user.post('/v1/responses', {
      model: 'chat',
      input: 'SECRET-PROMPT',
      metadata: { a: 'SECRET' },
    })
    await user.records(1)
    const rows = await gateway.deps.database.drizzle.execute(
      'select to_jsonb(usage_record)::text from usage_record',
    )
    expect(JSON.stringify(rows)).not.toContain('SECRET')
    expect(JSON.stringify(rows)).not.toContain('not JSON')
  })
})

test('nothing is recorded when the ledger is disabled', async () => {
  const config = { ...gateway.deps.config, usage: { ...gateway.deps.config.usage, enabled: false } }
  const metrics = createMetricRegistry({ seriesMax: 100 })
  const { usageModule } = await import('#usage/module.ts')
  const started = await usageModule.start?.({ ...gateway.deps, config, metrics })
  expect(started?.services.usageLedger).toBeNull()
  await started?.close?.()
})
