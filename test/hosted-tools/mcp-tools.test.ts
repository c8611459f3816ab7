import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import type { HostedTools } from '#inference/tool-loop/hosted-tools.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { type ServedMcp, serveMcp } from './mcp-server.ts'
import { callTool, docs, names, openBody, runOpening, toolbox } from './open-tools.ts'

let server: ServedMcp
const hostedTools: HostedTools[] = []

beforeAll(async () => {
  server = await serveMcp()
})

afterAll(() => server.stop())

afterEach(() => {
  for (const tools of hostedTools.splice(0)) tools.close()
})

const box = (mcp = {}) => toolbox({ mcpServer: [{ url: server.url }], mcp })

async function open(body: object, from = box()) {
  const tools = await openBody(from, body)
  hostedTools.push(tools.hostedTools)
  return tools
}

async function openListed(body: object, from = box()) {
  const tools = await open(body, from)
  const items = await runOpening(tools.hostedTools)
  return { ...tools, items }
}

test('the tools of a server are listed, and named with its label', async () => {
  const { hostedTools, items } = await openListed({ tools: [docs] })
  expect(items).toMatchObject([{ type: 'mcp_list_tools', server_label: 'docs' }])
  expect(items[0]).not.toHaveProperty('error')
  expect(names(hostedTools)).toContain('mcp__docs__slow')
  expect(
    hostedTools.definitions().find(({ name }) => name === 'mcp__docs__get_weather'),
  ).toMatchObject({
    description: 'The weather.',
    parameters: { properties: { city: { type: 'string' } } },
    strict: false,
  })
})

test('only allowed tools are listed and sent', async () => {
  for (const allowed_tools of [
    ['get_weather'],
    { tool_names: ['get_weather'] },
    { read_only: true },
  ]) {
    const { hostedTools, items } = await openListed({ tools: [{ ...docs, allowed_tools }] })
    expect(names(hostedTools)).toEqual(['mcp__docs__get_weather'])
    expect(items).toMatchObject([{ tools: [{ name: 'get_weather' }] }])
    expect(hostedTools.call('mcp__docs__slow')).toBeNull()
  }
})

test('a list is cached per set of credentials', async () => {
  const from = box()
  const before = server.lists()
  await openListed({ tools: [docs] }, from)
  await openListed({ tools: [docs] }, from)
  expect(server.lists() - before).toBe(1)
  await openListed({ tools: [{ ...docs, authorization: 'another' }] }, from)
  expect(server.lists() - before).toBe(2)
  const forgetful = box({ listCacheMs: 0 })
  await openListed({ tools: [docs] }, forgetful)
  await openListed({ tools: [docs] }, forgetful)
  expect(server.lists() - before).toBe(4)
})

const listed = {
  type: 'mcp_list_tools',
  server_label: 'docs',
  tools: [{ name: 'get_weather', input_schema: { type: 'object' } }],
}
const user = { role: 'user', content: 'Hello' }

test('a list in the input replaces a list request unless it lacks an allowed tool', async () => {
  const before = server.lists()
  const { hostedTools } = await open({ input: [listed, user], tools: [docs] })
  expect([hostedTools.opening.length, server.lists() - before]).toEqual([0, 0])
  expect(names(hostedTools)).toEqual(['mcp__docs__get_weather'])
  expect(await callTool(hostedTools, 'mcp__docs__get_weather', { city: 'Oslo' })).toMatchObject({
    result: 'rain in Oslo',
  })
  const wider = { ...docs, allowed_tools: ['get_weather', 'fail'] }
  const { hostedTools: again } = await openListed({ input: [listed, user], tools: [wider] })
  expect(names(again)).toEqual(['mcp__docs__get_weather', 'mcp__docs__fail'])
})

test("names are legal, at most 64 characters long, and distinct from the client's tools", async () => {
  const long = 'a_tool_with_a_name_that_is_longer_than_every_name_that_is_legal_here'
  const tools = [long, 'with space', 'with.dot', 'with_dot'].map((name) => ({
    name,
    input_schema: { type: 'object' },
  }))
  const own = { type: 'function', name: 'mcp__docs__with_dot', parameters: {} }
  const { hostedTools } = await open({ input: [{ ...listed, tools }, user], tools: [docs, own] })
  const offered = names(hostedTools)
  expect(new Set(offered).size).toBe(4)
  for (const name of offered) expect(name).toMatch(/^mcp__docs__[a-zA-Z0-9_-]{1,53}$/)
  expect(offered).not.toContain('mcp__docs__with_dot')
})

test('other names are not handled', async () => {
  const { hostedTools } = await openListed({ tools: [docs] })
  expect([hostedTools.call('get_weather'), hostedTools.call('mcp__docs__absent')]).toEqual([
    null,
    null,
  ])
})

test('invalid arguments are reported to the model, and missing ones are an empty object', async () => {
  const { hostedTools } = await openListed({ tools: [docs] })
  for (const args of ['[1]', '{"half', '"x"']) {
    const { item, result } = await callTool(hostedTools, 'mcp__docs__get_weather', args)
    expect(item).toMatchObject({ status: 'failed', output: null, error: { code: -32_602 } })
    expect(result).toBe('The call failed: The arguments are not a JSON object.')
  }
  expect(await callTool(hostedTools, 'mcp__docs__numbers', '')).toMatchObject({
    result: '{"sum":3}',
  })
})

test('output beyond the limit is truncated with a notice', async () => {
  const { hostedTools } = await openListed({ tools: [docs] }, box({ outputCharsMax: 100 }))
  const { item, result } = await callTool(hostedTools, 'mcp__docs__huge')
  expect(result).toBe(`${'x'.repeat(100)}\n[Truncated: the output is longer than 100 characters.]`)
  expect(item['output']).toBe(result)
})

const approvals: readonly [rule: unknown, asked: readonly string[]][] = [
  [undefined, ['get_weather', 'fail', 'slow']],
  ['always', ['get_weather', 'fail', 'slow']],
  ['never', []],
  [{ never: { tool_names: ['fail'] } }, ['get_weather', 'slow']],
  [{ never: { read_only: true } }, ['fail', 'slow']],
  [{ always: { tool_names: ['fail'] } }, ['get_weather', 'fail', 'slow']],
  [
    { always: { tool_names: ['fail'] }, never: { tool_names: ['fail', 'slow'] } },
    ['get_weather', 'fail'],
  ],
]

for (const [rule, asked] of approvals) {
  test(`require_approval ${JSON.stringify(rule)}`, async () => {
    const { hostedTools } = await openListed({ tools: [{ ...docs, require_approval: rule }] })
    const waits = (name: string) =>
      hostedTools.call(`mcp__docs__${name}`)?.begin('{}').type === 'mcp_approval_request'
    expect(['get_weather', 'fail', 'slow'].filter(waits)).toEqual([...asked])
  })
}

test('an approval request keeps its id', async () => {
  const { hostedTools } = await openListed({ tools: [{ ...docs, require_approval: 'always' }] })
  const call = hostedTools.call('mcp__docs__fail')
  const { item, result } = (await call?.run('{"a":1}', makeRequestContext())) ?? {}
  expect(item).toEqual({
    id: expect.stringMatching(/^mcpr_/),
    type: 'mcp_approval_request',
    server_label: 'docs',
    name: 'fail',
    arguments: '{"a":1}',
  })
  expect([call?.begin('{"a":1}'), result]).toEqual([item, null])
})

test('tool_choice uses the function names', async () => {
  const own = { type: 'function', name: 'mine', parameters: {} }
  const choose = async (tool_choice: unknown, allowed_tools?: string[]) => {
    const tool = { ...docs, ...(allowed_tools === undefined ? {} : { allowed_tools }) }
    const { hostedTools, toolChoice } = await openListed({ tools: [tool, own], tool_choice })
    return { choice: hostedTools.resolveToolChoice(toolChoice), offered: names(hostedTools) }
  }
  const server = { type: 'mcp', server_label: 'docs' }
  expect(await choose({ ...server, name: 'fail' })).toMatchObject({
    choice: { type: 'tool', name: 'mcp__docs__fail', form: 'function' },
  })
  expect(await choose(server, ['fail', 'slow'])).toMatchObject({
    choice: {
      type: 'allowed',
      mode: 'required',
      tools: [{ name: 'mcp__docs__fail' }, { name: 'mcp__docs__slow' }],
    },
  })
  expect(await choose({ ...server, name: 'absent' })).toMatchObject({ choice: { type: 'auto' } })
  const mixed = [
    { type: 'function', name: 'mine' },
    { ...server, name: 'fail' },
  ]
  expect(await choose({ type: 'allowed_tools', mode: 'auto', tools: mixed })).toEqual({
    choice: {
      type: 'allowed',
      mode: 'auto',
      tools: [{ name: 'mine' }, { name: 'mcp__docs__fail' }],
    },
    offered: ['mcp__docs__fail'],
  })
  const onlyMine = { type: 'allowed_tools', mode: 'auto', tools: mixed.slice(0, 1) }
  expect(await choose(onlyMine)).toMatchObject({ offered: [] })
  expect(await choose('none')).toEqual({ choice: { type: 'none' }, offered: [] })
  expect(await choose('required', ['fail'])).toMatchObject({ choice: { type: 'required' } })
})

test('tools that must not be called are not listed', async () => {
  const { hostedTools } = await open({ tools: [docs], tool_choice: 'none' })
  expect(hostedTools.opening).toEqual([])
})
