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

/** The item of a tool that ran at the upstream with this input, and had this result. */
function itemOf(name: string, input: object, content: unknown) {
  const { events } = decode([
    messageStart,
    blockStart({ type: 'server_tool_use', id: 'srvtoolu_1', name, input: {} }),
    inputDelta(JSON.stringify(input)),
    blockStop(),
    blockStart({ type: `${name}_tool_result`, tool_use_id: 'srvtoolu_1', content }, 1),
    blockStop(1),
    messageDelta(),
    messageStop,
  ])
  const [block] = blocksOf({ events, error: null })
  return block !== undefined && 'hosted' in block ? block.end : null
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
