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
