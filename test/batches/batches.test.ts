import { describe, expect, test } from 'bun:test'
import { buildApp } from '#app.ts'
import { asRecord } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  batchWorld,
  bodyOf,
  clientOf,
  createBatch,
  ended,
  linesOf,
  responseLine,
  uploadLines,
} from './world.ts'

/** Batches through the `openai` package. */

const world = batchWorld({
  upstream: [{ maxInFlight: 4 }],
  batches: { linesMax: 20, inputBytesMax: 20_000, retriesMax: 1 },
  limits: { requestBytesMax: 4_000 },
})

test('a batch runs every line, with an output file, an error file and the use of each line', async () => {
  const before = world.upstream.asked().length
  const file = await uploadLines(world.client, [
    responseLine('one'),
    responseLine('two', { store: true }),
    '',
    responseLine('unknown', { model: 'none' }),
  ])
  const created = await world.client.batches.create({
    input_file_id: file,
    endpoint: '/v1/responses',
    completion_window: '24h',
    metadata: { project: 'x' },
    output_expires_after: { anchor: 'created_at', seconds: 3_600 },
  })
  expect(created).toMatchObject({ object: 'batch', status: 'validating', input_file_id: file })
  const batch = await ended(world.client, created)
  expect(batch).toMatchObject({
    status: 'completed',
    model: 'm',
    errors: null,
    metadata: { project: 'x' },
    request_counts: { total: 3, completed: 2, failed: 1 },
    usage: { input_tokens: 14, output_tokens: 6, total_tokens: 20 },
  })
  const output = await linesOf(world.client, batch.output_file_id)
  expect([...output.keys()]).toEqual(['one', 'two'])
  expect(output.get('one')).toMatchObject({ error: null, response: { status_code: 200 } })
  expect(bodyOf(output.get('one'))).toMatchObject({ object: 'response', status: 'completed' })
  const stored = String(bodyOf(output.get('two'))['id'])
  expect((await world.client.responses.retrieve(stored)).status).toBe('completed')
  const errors = await linesOf(world.client, batch.error_file_id)
  expect(errors.get('unknown')).toMatchObject({ response: { status_code: 404 } })
  expect(bodyOf(errors.get('unknown'))).toMatchObject({ error: { code: 'model_not_found' } })
  expect(world.upstream.asked().length).toBe(before + 2)

  const written = await world.client.files.retrieve(batch.output_file_id ?? '')
  expect(written).toMatchObject({ filename: `${batch.id}_output.jsonl`, purpose: 'batch_output' })
  expect(written.expires_at).toBe(written.created_at + 3_600)
  const requestId = String(asRecord(output.get('one')?.['response'])['request_id'])
  await eventually('the ledger has the line', async () => {
    const records = await world.gateway.request('/v1/usage/records?limit=100')
    return (await records.text()).includes(requestId)
  })
})

const ok = responseLine('ok')
test.each([
  ['no JSON', [ok, '{"custom_id"'], 2, 'invalid_json_line'],
  ['an array', ['[]', ok], 1, 'invalid_json_line'],
  ['a deep line', [`{"a":${'['.repeat(200)}${']'.repeat(200)}}`], 1, 'invalid_json_line'],
  ['a long line', [ok, responseLine('long', { input: 'x'.repeat(5_000) })], 2, 'line_too_long'],
  ['no custom_id', [{ ...ok, custom_id: undefined }], 1, 'invalid_custom_id'],
  ['a NUL', [{ ...ok, custom_id: 'a\0' }], 1, 'invalid_custom_id'],
  ['the same custom_id', [ok, '', ok], 3, 'duplicate_custom_id'],
  ['a method', [{ ...ok, method: 'GET' }], 1, 'invalid_method'],
  ['another endpoint', [ok, { ...ok, custom_id: 'b', url: '/v1/embeddings' }], 2, 'invalid_url'],
  ['no body', [{ ...ok, body: [] }], 1, 'invalid_body'],
  ['a stream', [responseLine('s', { stream: true })], 1, 'invalid_body'],
  ['a background response', [responseLine('b', { background: true })], 1, 'invalid_body'],
  ['no model', [responseLine('m', { model: undefined })], 1, 'missing_required_parameter'],
  ['no lines', ['', ' \t'], null, 'empty_file'],
  [
    'many lines',
    Array.from({ length: 21 }, (_, n) => responseLine(`${n}`)),
    null,
    'too_many_lines',
  ],
] as const)(
  'an input with %s fails with its line, and no line runs',
  async (_, lines, line, code) => {
    const before = world.upstream.asked().length
    const batch = await ended(world.client, await createBatch(world.client, lines))
    expect(batch.status).toBe('failed')
    expect(batch.errors?.data?.[0]).toMatchObject({ code, line })
    expect([batch.output_file_id, batch.error_file_id]).toEqual([null, null] as never)
    expect(world.upstream.asked().length).toBe(before)
  },
)

test('a request that no batch can run is refused', async () => {
  const file = await uploadLines(world.client, [ok])
  const large = await uploadLines(world.client, ['x'.repeat(20_001)])
  const other = await world.client.files.create({
    file: new File(['{}'], 'a.txt'),
    purpose: 'user_data',
  })
  const create = (change: object) =>
    world.client.batches
      .create({
        input_file_id: file,
        endpoint: '/v1/responses',
        completion_window: '24h',
        ...change,
      } as never)
      .then(
        () => 'created',
        ({ status, param, code }) => `${status} ${param} ${code}`,
      )
  expect(await create({ endpoint: '/v1/chat/completions' })).toBe('400 endpoint invalid_request')
  expect(await create({ completion_window: '1h' })).toBe('400 completion_window invalid_request')
  expect(await create({ input_file_id: other.id })).toBe('400 input_file_id invalid_request')
  expect(await create({ input_file_id: large })).toBe('400 input_file_id file_too_large')
  expect(await create({ input_file_id: 'file-1' })).toBe('404 input_file_id not_found')
  expect(await create({ metadata: { a: 'x'.repeat(513) } })).toBe('400 metadata.a invalid_request')
  const expiry = { anchor: 'created_at', seconds: 1 }
  expect(await create({ output_expires_after: expiry })).toBe(
    '400 output_expires_after.seconds invalid_request',
  )
})

test('a line waits for a limit and is repeated after a failure of the upstream', async () => {
  const failures = new Map<string, number>()
  world.upstream.intercept((text, response) => {
    const name = ['busy', 'broken', 'gone'].find((word) => text.includes(word))
    const count = failures.get(name ?? '') ?? 0
    if (name === undefined || (name !== 'gone' && count === 1)) return false
    failures.set(name, count + 1)
    response.writeHead(name === 'busy' ? 429 : 500).end('{}')
    return true
  })
  const created = await createBatch(
    world.client,
    ['busy', 'broken', 'gone'].map((n) => responseLine(n)),
  )
  const batch = await ended(world.client, created)
  expect(batch.request_counts).toEqual({ total: 3, completed: 2, failed: 1 })
  const errors = await linesOf(world.client, batch.error_file_id)
  expect(errors.get('gone')).toMatchObject({ response: { status_code: 502 } })
})

test('embeddings run as a batch', async () => {
  const line = (id: string, input: string) => ({
    custom_id: id,
    method: 'POST',
    url: '/v1/embeddings',
    body: { model: 'local-hash', input, encoding_format: 'float' },
  })
  const lines = [line('a', 'One'), line('b', 'Two')]
  const batch = await ended(world.client, await createBatch(world.client, lines, '/v1/embeddings'))
  const output = await linesOf(world.client, batch.output_file_id)
  expect(bodyOf(output.get('b'))).toMatchObject({ object: 'list', model: 'local-hash' })
})

test('waiting interactive requests are served before lines of a batch', async () => {
  const hold = (word: string) =>
    world.gateway.post('/v1/responses', { model: 'm', input: word, store: false })
  const first = [1, 2, 3, 4].map((n) => hold(`held-first-${n}`))
  await eventually('every slot is in use', () => world.upstream.held().length === 4)
  const created = await createBatch(world.client, [responseLine('held-line')])
  await eventually('the line waits', async () => {
    const metrics = await (await world.gateway.request('/metrics')).text()
    return /sluice_queue_waiting\{model="m",priority="batch"\} 1/.test(metrics)
  })
  const second = [1, 2, 3, 4].map((n) => hold(`held-second-${n}`))
  await eventually('they wait too', async () => {
    const metrics = await (await world.gateway.request('/metrics')).text()
    return /sluice_queue_waiting\{model="m",priority="interactive"\} 4/.test(metrics)
  })
  world.upstream.release()
  await Promise.all(first)
  await eventually('the next are served', () => world.upstream.held().length === 4)
  expect(world.upstream.held().filter((text) => text.includes('held-second'))).toHaveLength(4)
  world.upstream.release()
  await Promise.all(second)
  await eventually('the line is served', () => world.upstream.held().length === 1)
  world.upstream.release()
  expect((await ended(world.client, created)).status).toBe('completed')
})

test('a second application of the same services begins no work', () => {
  const begun: string[] = []
  const { deps } = world.gateway
  buildApp({
    ...deps,
    batchWork: { ...deps.batchWork, process: async () => void begun.push('batches') },
    runs: { ...deps.runs, processQueue: () => void begun.push('responses') },
    lineAnswers: Object.assign(new Map(), { set: (path: string) => begun.push(path) }),
  })
  expect(begun).toEqual([])
})

describe('batches of another user', () => {
  test('are not found, and their files are no input', async () => {
    const batch = await ended(world.client, await createBatch(world.client, [ok]))
    const file = await uploadLines(world.client, [ok])
    const stranger = await clientOf(world.gateway, 'stranger')
    const absent = (work: Promise<unknown>) =>
      work.then(
        () => 200,
        ({ status }) => status,
      )
    expect(await absent(stranger.batches.retrieve(batch.id))).toBe(404)
    expect(await absent(stranger.batches.cancel(batch.id))).toBe(404)
    expect(await absent(stranger.files.content(batch.output_file_id ?? ''))).toBe(404)
    expect(
      await absent(
        stranger.batches.create({
          input_file_id: file,
          endpoint: '/v1/responses',
          completion_window: '24h',
        }),
      ),
    ).toBe(404)
    expect((await stranger.batches.list()).data).toEqual([])
    expect(await absent(stranger.batches.list({ after: batch.id }).then(() => {}))).toBe(400)
    // A batch of one API is none of the other.
    const token = await world.gateway.token()
    const messages = await fetch(`${world.gateway.url}/compat/v1/messages/batches/${batch.id}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(messages.status).toBe(404)
  })

  test('a list has every batch once, newest first', async () => {
    const owner = await clientOf(world.gateway, 'lister')
    const created: string[] = []
    for (let n = 0; n < 5; n++) created.unshift((await createBatch(owner, [ok])).id)
    const listed: string[] = []
    for await (const batch of owner.batches.list({ limit: 2 })) listed.push(batch.id)
    expect(listed).toEqual(created)
    for (const id of created) await ended(owner, { id })
  })
})
