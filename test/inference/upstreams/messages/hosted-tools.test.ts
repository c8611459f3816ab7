import { expect, test } from 'bun:test'
import { blocksOf } from '#test/inference/upstreams/responses/decoding.ts'
import {
  blockStart,
  blockStop,
  decode,
  inputDelta,
  messageDelta,
  messageStart,
  messageStop,
} from './decoding.ts'

/** The item of a tool that ran at the upstream: the blocks of its call and of its result. */
function itemOfBlocks(call: object, input: string, result: object) {
  const { events } = decode([
    messageStart,
    blockStart({ id: 'srvtoolu_1', input: {}, ...call }),
    ...(input === '' ? [] : [inputDelta(input)]),
    blockStop(),
    blockStart({ tool_use_id: 'srvtoolu_1', ...result }, 1),
    blockStop(1),
    messageDelta(),
    messageStop,
  ])
  const [block] = blocksOf({ events })
  return block !== undefined && 'hosted' in block ? block.end : null
}

function itemOf(name: string, input: object, content: unknown) {
  const call = { type: 'server_tool_use', name }
  return itemOfBlocks(call, JSON.stringify(input), { type: `${name}_tool_result`, content })
}

test.each([
  ['code_execution', { code: 'print(1)' }, 'print(1)'],
  ['bash_code_execution', { command: 'ls -l' }, 'ls -l'],
  ['text_editor_code_execution', { path: 'a.txt' }, '{"path":"a.txt"}'],
  ['code_execution', { code: 'print(1)', command: 'ls' }, 'print(1)'],
])('what %s runs with %j is its code', (name, input, code) => {
  const item = { type: 'code_interpreter_call', status: 'completed', container_id: '', code }
  const logs = (text: string) => ({ type: 'logs', logs: text })
  expect(itemOf(name, input, { stdout: '1\n', stderr: '' })).toEqual({
    ...item,
    outputs: [logs('1\n')],
  })
  expect(itemOf(name, input, { stdout: 'a', stderr: 'b' })).toEqual({
    ...item,
    outputs: [logs('a'), logs('b')],
  })
})

test('a search has its query and the addresses that were found', () => {
  const found = [{ type: 'web_search_result', url: 'https://a.example', title: 'A' }]
  const action = { type: 'search', query: 'tides' }
  const item = { type: 'web_search_call', status: 'completed' }
  expect(itemOf('web_search', { query: 'tides' }, found)).toEqual({
    ...item,
    action: { ...action, sources: [{ type: 'url', url: 'https://a.example' }] },
  })
  expect(itemOf('web_search', { query: 'tides' }, [])).toEqual({ ...item, action })
})

test.each([
  ['a text', 'done', 'done'],
  [
    'parts',
    [
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ],
    'one\ntwo',
  ],
])('a call of an MCP server has %s as its output, or as its error', (_, content, text) => {
  const call = { type: 'mcp_tool_use', name: 'look', server_name: 'maps' }
  const item = { type: 'mcp_call', name: 'look', server_label: 'maps' }
  const result = { type: 'mcp_tool_result', content }
  expect(itemOfBlocks(call, '{"a":1}', { ...result, is_error: false })).toEqual({
    ...item,
    status: 'completed',
    arguments: '{"a":1}',
    output: text,
    error: null,
  })
  expect(itemOfBlocks(call, '', { ...result, is_error: true })).toEqual({
    ...item,
    status: 'failed',
    arguments: '{}',
    output: null,
    error: text,
  })
})

test('a page that was opened has its address', () => {
  expect(itemOf('web_fetch', { url: 'https://a.example' }, {})).toEqual({
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'open_page', url: 'https://a.example' },
  })
})

test('input in the start of a call counts, unless it is streamed', () => {
  const call = { type: 'mcp_tool_use', name: 'look', server_name: 'maps', input: { a: 1 } }
  const result = { type: 'mcp_tool_result', content: 'done' }
  expect(itemOfBlocks(call, '', result)).toMatchObject({ arguments: '{"a":1}' })
  expect(itemOfBlocks(call, '{"a":2}', result)).toMatchObject({ arguments: '{"a":2}' })
})

test('only the input of an MCP call is streamed', () => {
  const typesOf = (call: object) =>
    decode([
      messageStart,
      blockStart({ id: 'srvtoolu_1', input: {}, ...call }),
      inputDelta('{"a":'),
      inputDelta('1}'),
      blockStop(),
      messageDelta(),
      messageStop,
    ]).events.flatMap((event): unknown[] =>
      event.type === 'hosted-tool-delta' ? [event.text] : 'item' in event ? [event.item] : [],
    )
  const mcp = { type: 'mcp_call', name: 'look', server_label: 'maps', output: null, error: null }
  expect(typesOf({ type: 'mcp_tool_use', name: 'look', server_name: 'maps' })).toEqual([
    { ...mcp, status: 'in_progress', arguments: '' },
    '{"a":',
    '1}',
    { ...mcp, status: 'completed', arguments: '{"a":1}' },
  ])
  const search = { type: 'web_search_call', action: { type: 'search', query: '' } }
  expect(typesOf({ type: 'server_tool_use', name: 'web_search' })).toEqual([
    { ...search, status: 'in_progress' },
    { ...search, status: 'completed' },
  ])
})

test('only its first result belongs to a call', () => {
  const call = { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'look', server_name: 'maps' }
  const result = (tool_use_id: string, content: string, index: number) => [
    blockStart({ type: 'mcp_tool_result', tool_use_id, content, is_error: false }, index),
    blockStop(index),
  ]
  const endOf = (...results: unknown[][]) => {
    const rest = [...results.flat(), messageDelta(), messageStop]
    const { events } = decode([messageStart, blockStart(call), blockStop(), ...rest])
    const [block] = blocksOf({ events })
    return block !== undefined && 'hosted' in block ? block.end : null
  }
  const twice = [result('mcptoolu_1', 'done', 1), result('mcptoolu_1', 'again', 2)]
  expect(endOf(...twice)).toMatchObject({ output: 'done' })
  expect(endOf(result('mcptoolu_2', 'done', 1))).toMatchObject({ output: null, error: null })
})
