import { afterEach, describe, expect, test } from 'bun:test'
import type { GenerationRequest } from '#inference/request.ts'
import { chatCompletions } from '#inference/upstreams/chat-completions/adapter.ts'
import { defaultQuirks, makeContext, makeRequest, userMessage } from '#test/support/generation.ts'
import { png, toDataUrl } from '#test/support/image-headers.ts'
import type { ReplayRequest } from '#test/support/replay-upstream.ts'
import { countingUpstream, jsonAnswer, stopCounting } from '#test/support/token-counting.ts'

afterEach(stopCounting)

const answers: Record<string, unknown> = {
  '/tokenize': { count: 40, tokens: Array(40).fill(1) },
  '/apply-template': { prompt: '<|user|>Hello<|end|>' },
}

/** The requests to a server, and the outcome. */
async function count(
  tokenCounter: 'vllm' | 'llama.cpp',
  request: GenerationRequest,
): Promise<{ tokens: number | null | undefined; requests: readonly ReplayRequest[] }> {
  const upstream = await countingUpstream(({ path }) => jsonAnswer(answers[path] ?? {}))
  const context = makeContext({ baseUrl: upstream.baseUrl })
  const quirks = { ...defaultQuirks, tokenCounter }
  const tokens = await chatCompletions.countTokens?.(request, {
    ...context,
    upstream: { ...context.upstream, quirks },
  })
  return { tokens, requests: upstream.requests }
}

const bodyOf = (request: ReplayRequest | undefined) => JSON.parse(request?.body ?? '')

const withTools = makeRequest({
  instructions: 'Be brief.',
  tools: [
    {
      type: 'function',
      name: 'look_up',
      description: 'Looks something up.',
      parameters: { type: 'object', properties: { word: { type: 'string' } } },
      strict: null,
    },
  ],
  sampling: { ...makeRequest().sampling, temperature: 0.5, maxOutputTokens: 100 },
})

describe('the counter of vLLM', () => {
  test('posts messages and tools outside the versioned path, with the credential', async () => {
    const { tokens, requests } = await count('vllm', withTools)
    expect(tokens).toBe(40)
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /tokenize'])
    expect(requests[0]?.headers['authorization']).toBe('Bearer a-secret')
    expect(bodyOf(requests[0])).toMatchObject({
      model: 'upstream-model',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
      ],
      tools: [{ type: 'function', function: { name: 'look_up' } }],
      add_generation_prompt: true,
    })
  })

  test('without generation parameters', async () => {
    const { requests } = await count('vllm', withTools)
    expect(Object.keys(bodyOf(requests[0])).toSorted()).toEqual([
      'add_generation_prompt',
      'messages',
      'model',
      'tools',
    ])
  })
})

describe('the counter of llama.cpp', () => {
  test('renders the prompt, then counts its tokens', async () => {
    const { tokens, requests } = await count('llama.cpp', withTools)
    expect(tokens).toBe(40)
    const [rendered, counted] = requests
    expect(bodyOf(rendered)).toMatchObject({ messages: expect.any(Array), tools: [{}] })
    expect(bodyOf(counted)).toEqual({
      content: '<|user|>Hello<|end|>',
      add_special: true,
      parse_special: true,
    })
  })
})

test('images and files are not sent but estimated', async () => {
  const request = makeRequest({
    items: [
      userMessage('What is this?'),
      {
        type: 'message',
        role: 'user',
        parts: [
          { type: 'text', text: 'And that?' },
          { type: 'image', url: toDataUrl(png(750, 100)), detail: null },
          { type: 'file', data: null, url: 'https://files.example/a.pdf', filename: null },
        ],
      },
    ],
  })
  const { tokens, requests } = await count('vllm', request)
  expect(tokens).toBe(40 + 100 + 1_500)
  expect(requests[0]?.body).toContain('And that?')
  expect(requests[0]?.body).not.toContain('image')
})

test('a request that cannot be encoded is not sent to the counter', async () => {
  const orphan = { type: 'tool-result', callId: 'call_1', form: 'function', parts: [] } as const
  await expect(count('vllm', makeRequest({ items: [orphan] }))).rejects.toMatchObject({
    kind: 'invalid_request',
  })
})
