import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI, type OpenAIProvider } from '@ai-sdk/openai'
import { Agent, OpenAIProvider as AgentsProvider, fileSearchTool, Runner } from '@openai/agents'
import { generateText, streamText } from 'ai'
import { asRecord } from '#lib/json.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { ann, fillCollection } from '#test/support/fill-collection.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** Responses with file search in other client packages. */

let gateway: Gateway
let openai: OpenAIProvider
let apiKey: string
beforeAll(async () => {
  gateway = await startGateway()
  apiKey = await gateway.token()
  const baseURL = `${gateway.url}/v1`
  openai = createOpenAI({ baseURL, apiKey, fetch: checkedFetch as typeof fetch })
  const files = { 'leave.txt': 'Holiday may be carried over until March.' }
  await fillCollection(gateway, ann, { name: 'docs', files })
})
afterAll(() => gateway.stop())

const prompt = 'Until when may holiday be carried over?'
const source = { type: 'source', sourceType: 'document', title: 'leave.txt' }

test('the AI SDK returns the file as a source', async () => {
  const tools = { file_search: openai.tools.fileSearch({ vectorStoreIds: ['docs'] }) }
  const request = { model: openai('demo-fast'), prompt, tools }
  const whole = await generateText(request)
  expect(whole.sources).toMatchObject([source])
  expect(whole.toolResults).toMatchObject([{ toolName: 'file_search', output: { results: null } }])
  const stream = streamText(request)
  expect(await stream.text).toBe(whole.text)
  expect(await stream.sources).toMatchObject([source])
})

test('the AI SDK returns the citations of an agent over /compat', async () => {
  const created = await gateway.post('/v1/agents', {
    name: 'Helper',
    model: 'demo-fast',
    collections: ['docs'],
  })
  const model = String(asRecord(await created.json())['model_id'])
  const provider = createAnthropic({
    baseURL: `${gateway.url}/compat/v1`,
    authToken: apiKey,
    fetch: checkedFetch as typeof fetch,
  })
  const { text, content } = await generateText({ model: provider(model), prompt })
  expect(text).toContain('Holiday may be carried over until March.')
  expect(JSON.stringify(content)).toContain('search_result_location')
})

test('an agent of @openai/agents searches and answers', async () => {
  const client = await gateway.openai()
  const runner = new Runner({
    modelProvider: new AgentsProvider({ openAIClient: client, useResponses: true }),
    tracingDisabled: true,
  })
  const tools = [fileSearchTool('docs', { includeSearchResults: true })]
  const clerk = new Agent({ name: 'Clerk', model: 'demo-fast', tools })
  const result = await runner.run(clerk, prompt)
  expect(String(result.finalOutput)).toContain('Holiday may be carried over until March.')
  expect(result.newItems.map(({ type }) => type)).toEqual(['tool_call_item', 'message_output_item'])
  const next = await runner.run(clerk, [...result.history, { role: 'user', content: 'Thanks.' }])
  expect(String(next.finalOutput).length).toBeGreaterThan(5)
})
