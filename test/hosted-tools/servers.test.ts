import { afterAll, beforeAll, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { type ServedMcp, serveMcp } from './mcp-server.ts'
import { callTool, docs, names, openBody, runOpening, toolbox } from './open-tools.ts'

let server: ServedMcp

beforeAll(async () => {
  server = await serveMcp()
})

afterAll(() => server.stop())

const resolve = async (hostname: string) =>
  hostname === 'inside.example' ? ['10.0.0.1'] : ['93.184.216.34']

type Box = Parameters<typeof toolbox>[0]

async function refusal(box: Box, tool: object, groups: readonly string[] = []) {
  try {
    await openBody(toolbox({ resolve, ...box }), { tools: [{ ...docs, ...tool }] }, groups)
  } catch (error) {
    if (error instanceof AppError) return [error.status, error.param, error.message]
    throw error
  }
  throw new Error('it was accepted')
}

test('a configured server is found by its label or its URL', async () => {
  const box = toolbox({ mcpServer: [{ url: server.url }] })
  for (const tool of [docs, { ...docs, server_label: 'mine', server_url: server.url }]) {
    const { hostedTools } = await openBody(box, { tools: [tool] })
    await runOpening(hostedTools)
    expect(names(hostedTools)).toContain(`mcp__${tool.server_label}__get_weather`)
    hostedTools.close()
  }
})

test('a server for certain groups is not available to others', async () => {
  const mcpServer = [{ url: server.url, groups: ['staff', 'admins'] }]
  const { hostedTools } = await openBody(toolbox({ mcpServer }), { tools: [docs] }, ['admins'])
  expect(hostedTools.opening).toHaveLength(1)
  expect(await refusal({ mcpServer }, {}, ['users'])).toEqual([
    400,
    'tools[0].server_url',
    'tools[0].server_url is required: no server with the label "docs" is configured.',
  ])
})

const url = 'tools[0].server_url'
const refusals: readonly [why: string, box: Box, serverUrl: string, sentence: string][] = [
  ['no host is open', {}, 'https://a.example/mcp', 'names a host that is not allowed here'],
  [
    'another host is open',
    { mcp: { hosts: ['*.b.example'] } },
    'https://a.example/mcp',
    'names a host that is not allowed here',
  ],
  ['plain http', { mcp: { hosts: ['*'] } }, 'http://a.example/', 'must begin with https://'],
  ['credentials', { mcp: { hosts: ['*'] } }, 'https://u:p@a.example/', 'must not hold credentials'],
  [
    'a port',
    { mcp: { hosts: ['*'] } },
    'https://a.example:22/',
    'names a port that is not allowed here',
  ],
  [
    'a private name',
    { mcp: { hosts: ['*'] } },
    'https://inside.example/',
    'leads to an address that is not public',
  ],
  [
    'loopback',
    { mcp: { hosts: ['*'] } },
    'https://127.0.0.1/',
    'leads to an address that is not public',
  ],
  ['no URL', { mcp: { hosts: ['*'] } }, 'nowhere', 'must be a URL'],
]

for (const [why, box, serverUrl, sentence] of refusals) {
  test(`a server URL is rejected: ${why}`, async () => {
    expect(await refusal(box, { server_url: serverUrl })).toEqual([400, url, `${url} ${sentence}.`])
  })
}

test("the client's credentials are sent to the server, protocol headers are not", async () => {
  const { hostedTools } = await openBody(toolbox({ mcpServer: [{ url: server.url }] }), {
    tools: [
      {
        ...docs,
        authorization: 'of-the-caller',
        headers: {
          'X-Team': 'red',
          Host: 'elsewhere',
          'Mcp-Session-Id': 'stolen',
          'Content-Length': '1',
        },
      },
    ],
  })
  await runOpening(hostedTools)
  hostedTools.close()
  const headers = server.requests.at(-1)?.headers
  expect(headers?.get('authorization')).toBe('Bearer of-the-caller')
  expect(headers?.get('x-team')).toBe('red')
  expect(headers?.get('mcp-session-id')).toBeNull()
  expect(headers?.get('host')).toBe(new URL(server.url).host)
})

test('configured headers take precedence and are redacted', async () => {
  const key = 'a-secret-of-the-administrator'
  const box = toolbox({ mcpServer: [{ url: server.url, key, headers: { 'X-Team': 'blue' } }] })
  const tool = { ...docs, authorization: 'of-the-caller', headers: { 'x-team': 'red' } }
  const { hostedTools } = await openBody(box, { tools: [tool] })
  await runOpening(hostedTools)
  const { item, result } = await callTool(hostedTools, 'mcp__docs__echo_secret')
  hostedTools.close()
  expect(server.requests.at(-1)?.headers.get('x-team')).toBe('blue')
  expect([item['output'], result]).toEqual([
    'I was sent Bearer [redacted]',
    'I was sent Bearer [redacted]',
  ])
})

test('a public server is called at its validated address', async () => {
  const asked: string[] = []
  const { hostedTools } = await openBody(
    toolbox({
      mcp: { hosts: ['*.example'] },
      resolve,
      fetch: async (target, init) => {
        asked.push(`${target} ${new Headers(init.headers).get('host')}`)
        return new Response('', { status: 404 })
      },
    }),
    { tools: [{ ...docs, server_url: 'https://a.example/mcp?x=1' }] },
  )
  expect(await runOpening(hostedTools)).toMatchObject([
    { type: 'mcp_list_tools', tools: [], error: 'The server responded with HTTP status 404.' },
  ])
  expect(new Set(asked)).toEqual(new Set(['https://93.184.216.34:443/mcp?x=1 a.example']))
})
