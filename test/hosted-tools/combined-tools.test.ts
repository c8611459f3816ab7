import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Response, Tool } from 'openai/resources/responses/responses'
import { ann, fillCollection } from '#test/support/fill-collection.ts'
import { type McpGateway, startMcpGateway } from '#test/surfaces/responses/mcp-gateway.ts'

/** Remote tools and a search of files in one request. */

let world: McpGateway
beforeAll(async () => {
  world = await startMcpGateway()
  const files = { 'leave.txt': 'Holiday may be carried over until March.' }
  await fillCollection(world.gateway, ann, { name: 'docs', files })
})
afterAll(() => world.stop())

const tools: Tool[] = [
  { type: 'file_search', vector_store_ids: ['docs'] },
  {
    type: 'mcp',
    server_label: 'docs',
    require_approval: 'never',
    allowed_tools: ['get_weather'],
  },
]

async function typesOf(fields: object): Promise<string[]> {
  const client = await world.gateway.openai()
  const response: Response = await client.responses.create({
    model: 'demo-tools',
    input: 'When is holiday?',
    tools,
    ...fields,
  })
  expect(response.status).toBe('completed')
  return response.output.map(({ type }) => type)
}

test('both are called, and the response quotes the file', async () => {
  expect(await typesOf({})).toEqual(['mcp_list_tools', 'mcp_call', 'file_search_call', 'message'])
})

test.each([
  ['mcp_call', { type: 'mcp', server_label: 'docs' }],
  ['file_search_call', { type: 'file_search' }],
])('%s alone is demanded', async (type, choice) => {
  const types = await typesOf({ tool_choice: choice })
  expect(types.filter((one) => one.endsWith('_call'))).toEqual([type])
})

test.each([
  ['mcp_call', { type: 'mcp', server_label: 'docs' }],
  ['file_search_call', { type: 'file_search' }],
])('%s alone is allowed', async (type, tool) => {
  const types = await typesOf({ tool_choice: { type: 'allowed_tools', tools: [tool] } })
  expect(types.filter((one) => one.endsWith('_call'))).toEqual([type])
})
