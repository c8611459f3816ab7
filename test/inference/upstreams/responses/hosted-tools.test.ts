import { describe, expect, test } from 'bun:test'
import { blocksOf, decode, finishOf } from './decoding.ts'
import {
  completed,
  created,
  itemAdded,
  itemDone,
  message,
  messageWith,
  textDelta,
} from './payloads.ts'

describe('tools that run at the upstream', () => {
  const search = { type: 'web_search_call', id: 'ws_1', status: 'in_progress' }
  const found = { ...search, status: 'completed', action: { type: 'search', query: 'bun' } }
  const stage = (type: string, reached: string) => ({
    type: `response.${type}.${reached}`,
    item_id: 'ws_1',
    output_index: 0,
  })

  test('report their stages and end with their final item, without an id', () => {
    const decoded = decode([
      created,
      itemAdded(search),
      stage('web_search_call', 'in_progress'),
      stage('web_search_call', 'in_progress'),
      stage('web_search_call', 'searching'),
      stage('web_search_call', 'completed'),
      itemDone(found),
      completed([found]),
    ])
    expect(blocksOf(decoded)).toEqual([
      {
        hosted: { type: 'web_search_call', status: 'in_progress' },
        stages: ['in_progress', 'searching', 'completed'],
        end: {
          type: 'web_search_call',
          status: 'completed',
          action: { type: 'search', query: 'bun' },
        },
      },
    ])
    expect(finishOf(decoded)).toMatchObject({ reason: 'stop' })
  })

  test.each([
    ['web_search_call', ['in_progress', 'searching', 'completed']],
    ['file_search_call', ['in_progress', 'searching', 'completed']],
    ['code_interpreter_call', ['in_progress', 'interpreting', 'completed']],
    ['image_generation_call', ['in_progress', 'generating', 'completed']],
    ['mcp_call', ['in_progress', 'completed', 'failed']],
    ['mcp_list_tools', ['in_progress', 'completed', 'failed']],
    ['compaction', ['compacting']],
    ['apply_patch_call', []],
    ['computer_call', []],
    ['local_shell_call', []],
    ['mcp_approval_request', []],
    ['program', []],
    ['program_output', []],
    ['shell_call', []],
    ['tool_search_call', []],
    ['tool_search_output', []],
  ])('%s reports only the states that its format has', (type, stages) => {
    const item = { type, id: 'ws_1', field: 1 }
    const all = [
      'in_progress',
      'searching',
      'interpreting',
      'generating',
      'compacting',
      'partial_image',
    ]
    const decoded = decode([
      created,
      itemAdded(item),
      ...[...all, 'completed', 'failed', 'added', 'done'].map((reached) => stage(type, reached)),
      itemDone(item),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { hosted: { type, field: 1 }, stages, end: { type, field: 1 } },
    ])
  })

  test.each([
    ['mcp_call', 'mcp_call_arguments', 'arguments'],
    ['code_interpreter_call', 'code_interpreter_call_code', 'code'],
  ])('%s streams its input, and repeats none of it', (type, event, field) => {
    const inputOf = (...input: object[]) => {
      const item = { type, id: 'ws_1' }
      const { events } = decode([created, itemAdded(item), ...input, itemDone(item), completed()])
      return events.flatMap((each) => (each.type === 'hosted-tool-delta' ? [each.text] : []))
    }
    const delta = (text: string) => ({ ...stage(event, 'delta'), delta: text })
    const done = (text: string) => ({ ...stage(event, 'done'), [field]: text })
    expect(inputOf(delta('a = '), delta('1'), done('a = 1'))).toEqual(['a = ', '1'])
    expect(inputOf(delta('a = '), done('a = 1'))).toEqual(['a = ', '1'])
    expect(inputOf(done('a = 1'))).toEqual(['a = 1'])
    const other = type === 'mcp_call' ? 'code_interpreter_call_code' : 'mcp_call_arguments'
    expect(inputOf({ ...stage(other, 'delta'), delta: 'x' })).toEqual([])
  })

  test.each([
    ['image_generation_call', 'image_generation_call.partial_image', { partial_image_b64: 'AA==' }],
    ['shell_call', 'shell_call_command.delta', { delta: 'ls', command_index: 0 }],
    ['shell_call', 'shell_call_output_content.done', { output: [] }],
  ])('%s passes on %s without its ids', (type, name, fields) => {
    const item = { type, id: 'ws_1' }
    const ids = { sequence_number: 3, obfuscation: 'x', stream_id: 's' }
    const event = { type: `response.${name}`, item_id: 'ws_1', output_index: 0, ...ids, ...fields }
    const passed = (...between: object[]) =>
      decode([created, itemAdded(item), ...between, completed()]).events.filter(
        (each) => each.type === 'hosted-tool-event',
      )
    const expected = { type: 'hosted-tool-event', block: 0, name, fields }
    expect(passed(event)).toEqual([expected] as never)
    expect(passed({ ...event, type: 'response.shell_call_command.of_tomorrow' })).toEqual([])
    expect(passed(itemDone(item), event)).toEqual([])
    const other = { ...item, type: 'web_search_call' }
    expect(decode([created, itemAdded(other), event, completed()]).events).toHaveLength(4)
  })

  test('only in the end of their item, or in the final event, are emitted', () => {
    const { id: _, ...item } = found
    const expected = [{ hosted: item, stages: [], end: item }]
    expect(blocksOf(decode([created, itemDone(found), completed()]))).toEqual(expected)
    expect(blocksOf(decode([created, completed([found])]))).toEqual(expected)
  })

  test('that report no end take it from the final event, or keep their last state', () => {
    const start = { hosted: { type: 'web_search_call', status: 'in_progress' }, stages: [] }
    const { id: _, ...item } = found
    expect(blocksOf(decode([created, itemAdded(search), completed([found])]))).toEqual([
      { ...start, end: item },
    ])
    expect(blocksOf(decode([created, itemAdded(search), completed()]))).toEqual([
      { ...start, end: start.hosted },
    ])
  })

  test('delay the answer until they have ended', () => {
    const decoded = decode([
      created,
      itemAdded(search),
      itemAdded(message, { output_index: 1 }),
      textDelta('Found.', { item_id: 'msg_1', output_index: 1 }),
      stage('web_search_call', 'searching'),
      itemDone(found),
      itemDone(messageWith('Found.'), { output_index: 1 }),
      completed(),
    ])
    expect(blocksOf(decoded)).toMatchObject([{ stages: ['searching'] }, { text: 'Found.' }])
  })

  test('of an unknown type are forwarded without their events', () => {
    const item = { type: 'acme:thing', id: 'x_1' }
    const decoded = decode([
      created,
      itemAdded(item),
      { type: 'response.acme:thing.completed', item_id: 'x_1', output_index: 0 },
      itemDone(item),
      completed([item, messageWith('Hi')]),
    ])
    const hosted = { type: 'acme:thing' }
    expect(blocksOf(decoded)).toEqual([{ hosted, stages: [], end: hosted }, { text: 'Hi' }])
  })
})
