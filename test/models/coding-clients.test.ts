import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemPrincipal } from '#lib/request-context.ts'
import { modelEndpoints } from '#models/endpoints.ts'
import { modelList, modelRecord } from '#models/schema.ts'
import { checkDescribed, checkExamples } from '#test/support/described-shapes.ts'
import { operationsOf } from '#test/support/endpoints.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'

/** `GET /v1/models?client_version=…`: what coding clients in a terminal read, pinned by field. */

let gateway: Gateway

beforeAll(async () => {
  const listed = { data: [{ id: 'org/large', object: 'model', max_model_len: 8192 }] }
  const upstream = await upstreamThat({ headers: json, body: JSON.stringify(listed) })
  gateway = await startGateway({
    upstream: [{ name: 'local', url: upstream.baseUrl }],
    model: [
      {
        name: 'thinker',
        upstreams: ['local'],
        capabilities: ['tools', 'vision', 'reasoning'],
        contextWindow: 65_536,
      },
      { name: 'embedder', mode: 'embed', upstreams: ['local'] },
    ],
  })
  await eventually(
    'the upstream was asked',
    () => gateway.deps.catalogue.list(systemPrincipal).length === 3,
  )
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

/** All that version 0.169 of the strictest client demands, and what it makes good use of. */
const plain = {
  slug: 'org/large',
  display_name: 'org/large',
  description: null,
  supported_reasoning_levels: [],
  default_reasoning_level: null,
  supports_reasoning_summaries: false,
  shell_type: 'shell_command',
  apply_patch_tool_type: 'freeform',
  supports_parallel_tool_calls: true,
  experimental_supported_tools: [],
  support_verbosity: false,
  input_modalities: ['text'],
  context_window: 8192,
  truncation_policy: { mode: 'tokens', limit: 10_000 },
  visibility: 'list',
  supported_in_api: true,
  priority: 1,
  base_instructions: expect.stringContaining('You are a coding agent.'),
}

test('a client that sends its version receives a second list', async () => {
  const usual = await read('/v1/models')
  const answer = await read('/v1/models?client_version=0.169.0')
  expect(answer).toEqual({
    ...usual,
    models: [
      {
        ...plain,
        slug: 'thinker',
        display_name: 'thinker',
        supported_reasoning_levels: ['low', 'medium', 'high'].map((effort) => ({
          effort,
          description: expect.any(String),
        })),
        default_reasoning_level: 'medium',
        supports_reasoning_summaries: true,
        input_modalities: ['text', 'image'],
        context_window: 65_536,
        priority: 0,
      },
      plain,
    ],
  })
})

test('without a version, and for a single model, nothing is added', async () => {
  expect(Object.keys(await read('/v1/models'))).toEqual(['object', 'data'])
  expect(await read('/v1/models/thinker?client_version=0.169.0')).not.toHaveProperty('models')
})

test('the openai package reads the response with both lists', async () => {
  const client = await gateway.openai()
  const page = client.models.list({ query: { client_version: '0.169.0' } })
  const ids = await Array.fromAsync(page, ({ id }) => id)
  expect(ids.slice(0, 3)).toEqual(['thinker', 'embedder', 'org/large'])
  expect(ids).toContain('whisper-1')
})

test('the examples of both endpoints match their schemas', () => {
  for (const [, operation] of operationsOf(modelEndpoints).all) checkExamples(operation)
})

async function read(path: string): Promise<object> {
  const answer = await gateway.request(path)
  expect(answer.status).toBe(200)
  const said = (await answer.json()) as object
  checkDescribed('data' in said ? modelList : modelRecord, said)
  return said
}
