import { describe, expect, test } from 'bun:test'
import { blocksOf, decode, finishOf } from './decoding.ts'
import { argumentsDelta, call, completed, created, itemAdded, itemDone } from './payloads.ts'

const at = { item_id: 'fc_1', output_index: 0 }
const done = (args: string) => ({
  type: 'response.function_call_arguments.done',
  ...at,
  arguments: args,
})

describe('function calls', () => {
  const filled = { ...call, arguments: '{"a":1}', status: 'completed' }
  const expected = [{ call: 'add', id: 'call_1', input: '{"a":1}' }]

  test.each([
    [
      'deltas',
      [
        itemAdded(call),
        argumentsDelta('{"a"'),
        argumentsDelta(':1}'),
        done('{"a":1}'),
        itemDone(filled),
      ],
    ],
    ['the end of the arguments', [itemAdded(call), done('{"a":1}'), itemDone(filled)]],
    ['the end of the item', [itemAdded(call), itemDone(filled)]],
    ['the end of the item, not announced', [itemDone(filled)]],
    [
      'deltas before the announcement',
      [argumentsDelta('{"a"'), itemAdded(call), argumentsDelta(':1}'), itemDone(filled)],
    ],
    [
      'deltas without an announcement',
      [argumentsDelta('{"a"'), argumentsDelta(':1}'), done('{"a":1}'), itemDone(filled)],
    ],
    ['a part of the deltas', [itemAdded(call), argumentsDelta('{"a'), itemDone(filled)]],
    ['the announcement', [itemAdded(filled)]],
    ['the last event', []],
  ])('with arguments from %s are emitted once', (_, payloads) => {
    const decoded = decode([created, ...payloads, completed([filled])])
    expect(blocksOf(decoded)).toEqual(expected)
    expect(finishOf(decoded)).toMatchObject({ reason: 'tool-calls' })
  })

  test('with arguments as an object become JSON text', () => {
    const decoded = decode([created, itemDone({ ...call, arguments: { a: 1 } }), completed()])
    expect(blocksOf(decoded)).toEqual(expected)
  })

  test.each([[''], [null], [undefined]])('with arguments %p have the empty object', (nothing) => {
    const empty = { ...call, arguments: nothing }
    const decoded = decode([
      created,
      itemAdded(empty),
      done(''),
      itemDone(empty),
      completed([empty]),
    ])
    expect(blocksOf(decoded)).toEqual([{ call: 'add', id: 'call_1', input: '{}' }])
  })

  test('keep their namespace', () => {
    const item = { ...call, namespace: 'math' }
    const decoded = decode([
      created,
      itemAdded(item),
      argumentsDelta('{}'),
      itemDone(item),
      completed([item]),
    ])
    expect(blocksOf(decoded)).toEqual([
      { call: 'add', id: 'call_1', input: '{}', namespace: 'math' },
    ])
  })

  test('get a generated call id if theirs is missing, empty or taken', () => {
    const nameless = { ...call, id: undefined }
    const decoded = decode([
      created,
      itemDone({ ...nameless, call_id: undefined }, { output_index: 0 }),
      itemDone({ ...nameless, call_id: '' }, { output_index: 1 }),
      itemDone({ ...nameless, call_id: 'call_1' }, { output_index: 2 }),
      itemDone({ ...call, id: 'fc_9', call_id: 'call_1' }, { output_index: 3 }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([
      { call: 'add', id: 'call_minted_1', input: '{}' },
      { call: 'add', id: 'call_minted_2', input: '{}' },
      { call: 'add', id: 'call_1', input: '{}' },
      { call: 'add', id: 'call_minted_3', input: '{}' },
    ])
  })

  test('are buffered until their name arrives', () => {
    const unnamed = { ...call, name: '' }
    const decoded = decode([
      created,
      itemAdded(unnamed),
      argumentsDelta('{"a":1}'),
      itemDone(filled),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual(expected)
    const named = decode([
      created,
      argumentsDelta('{"a":1}'),
      { ...done('{"a":1}'), name: 'add' },
      completed(),
    ])
    expect(blocksOf(named)).toEqual([{ call: 'add', id: 'call_minted_1', input: '{"a":1}' }])
  })

  test('without any name fail the generation', () => {
    const unnamed = { ...call, name: '' }
    const decoded = decode([
      created,
      itemAdded(unnamed),
      argumentsDelta('{}'),
      itemDone(unnamed),
      completed(),
    ])
    expect(decoded.error?.kind).toBe('upstream_invalid_answer')
  })

  test('are limited in their total argument text', () => {
    const second = { ...call, id: 'fc_2', call_id: 'call_2' }
    const payloads = [
      created,
      itemAdded(call),
      argumentsDelta('x'.repeat(60)),
      itemDone({ ...call, arguments: 'x'.repeat(60) }),
      itemAdded(second, { output_index: 1 }),
      argumentsDelta('x'.repeat(60), { item_id: 'fc_2', output_index: 1 }),
    ]
    const decoded = decode(payloads, { toolArgumentCharsMax: 100 })
    expect(decoded.error?.kind).toBe('upstream_invalid_answer')
    expect(blocksOf(decoded)).toHaveLength(2)
  })

  test('that are repeated are emitted once', () => {
    const again = [itemAdded(filled), argumentsDelta('{"a":1}'), done('{"a":1}'), itemDone(filled)]
    const decoded = decode([
      created,
      itemAdded(call),
      ...again.slice(1),
      itemDone(filled),
      completed([filled]),
    ])
    expect(blocksOf(decoded)).toEqual(expected)
    const announcedTwice = decode([
      created,
      itemAdded(call),
      itemAdded(call),
      argumentsDelta('{"a":1}'),
      itemDone(filled),
      completed(),
    ])
    expect(blocksOf(announcedTwice)).toEqual(expected)
  })
})

describe('custom tool calls', () => {
  const item = { type: 'custom_tool_call', id: 'ct_1', call_id: 'call_1', name: 'sql', input: '' }
  const where = { item_id: 'ct_1', output_index: 0 }
  const delta = (piece: string) => ({
    type: 'response.custom_tool_call_input.delta',
    ...where,
    delta: piece,
  })

  test('carry free text', () => {
    const decoded = decode([
      created,
      itemAdded(item),
      delta('select '),
      { type: 'response.custom_tool_call_input.done', ...where, input: 'select 1' },
      itemDone({ ...item, input: 'select 1' }),
      completed([{ ...item, input: 'select 1' }]),
    ])
    expect(blocksOf(decoded)).toEqual([
      { call: 'sql', id: 'call_1', input: 'select 1', custom: true },
    ])
    expect(finishOf(decoded)).toMatchObject({ reason: 'tool-calls' })
  })

  test('may be empty', () => {
    const decoded = decode([created, itemAdded(item), itemDone(item), completed()])
    expect(blocksOf(decoded)).toEqual([{ call: 'sql', id: 'call_1', input: '', custom: true }])
  })
})
