import { describe, expect, test } from 'bun:test'
import { type Block, blocksOf, decode, finishOf } from './decoding.ts'
import {
  argumentsDelta,
  call,
  completed,
  created,
  itemAdded,
  itemDone,
  message,
  messageWith,
  reasoning,
  textDelta,
} from './payloads.ts'

const usage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 15,
}
const incomplete = (reason: string | null, output?: unknown) => ({
  type: 'response.incomplete',
  response: {
    status: 'incomplete',
    incomplete_details: reason === null ? null : { reason },
    ...(output === undefined ? {} : { output }),
  },
})
describe('the end', () => {
  test('reports the usage with its details', () => {
    const decoded = decode([created, { type: 'response.completed', response: { usage } }])
    expect(finishOf(decoded)).toEqual({
      type: 'finish',
      reason: 'stop',
      rawReason: 'completed',
      usage: {
        inputTokens: 10,
        cachedTokens: 4,
        cacheWriteTokens: 2,
        outputTokens: 5,
        reasoningTokens: 3,
        totalTokens: 15,
      },
    })
  })

  test('missing details and totals are filled in; without usage it is null', () => {
    const bare = { input_tokens: 10, output_tokens: 5 }
    const decoded = decode([created, { type: 'response.completed', response: { usage: bare } }])
    expect(finishOf(decoded)).toMatchObject({
      usage: { cachedTokens: 0, reasoningTokens: 0, totalTokens: 15 },
    })
    expect(finishOf(decode([created, { type: 'response.completed' }]))).toMatchObject({
      reason: 'stop',
      usage: null,
    })
  })

  test.each(['tool_usage', 'input_transformations', 'prompt_cache_diagnostics'])(
    'reports %s as the upstream did',
    (name) => {
      const end = (value: unknown) => ({ type: 'response.completed', response: { [name]: value } })
      expect(finishOf(decode([created, end({ a: 1 })]))).toMatchObject({
        reported: { [name]: { a: 1 } },
      })
      expect(finishOf(decode([created, end(null)]))).not.toHaveProperty('reported')
      expect(finishOf(decode([created, completed()]))).not.toHaveProperty('reported')
    },
  )

  test.each([
    ['max_output_tokens', 'length', 'max_output_tokens'],
    ['content_filter', 'content-filter', 'content_filter'],
    ['steered', 'length', 'steered'],
    [null, 'length', 'incomplete'],
  ])('incomplete because of %p is %s', (given, reason, rawReason) => {
    const decoded = decode([created, itemAdded(message), textDelta('Hal'), incomplete(given)])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hal', cut: true }])
    expect(finishOf(decoded)).toMatchObject({ reason, rawReason })
  })

  test('a truncated call is never complete', () => {
    const half = { ...call, arguments: '{"a":', status: 'incomplete' }
    const expected: Block[] = [{ call: 'add', id: 'call_1', input: '{"a":', cut: true }]
    const start = [created, itemAdded(call), argumentsDelta('{"a":')]
    expect(
      blocksOf(decode([...start, itemDone(half), incomplete('max_output_tokens', [half])])),
    ).toEqual(expected)
    expect(blocksOf(decode([...start, incomplete('max_output_tokens', [half])]))).toEqual(expected)
    expect(blocksOf(decode([...start, incomplete('max_output_tokens')]))).toEqual(expected)
  })

  test('items that ended before the truncation stay complete', () => {
    const decoded = decode([
      created,
      itemAdded(reasoning),
      { type: 'response.reasoning_text.delta', item_id: 'rs_1', output_index: 0, delta: 'Hm.' },
      itemDone({ ...reasoning, content: [{ type: 'reasoning_text', text: 'Hm.' }] }),
      itemAdded(message, { output_index: 1 }),
      textDelta('Hal', { item_id: 'msg_1', output_index: 1 }),
      incomplete('max_output_tokens'),
    ])
    expect(blocksOf(decoded)).toEqual([{ reasoning: ['Hm.'] }, { text: 'Hal', cut: true }])
  })

  test('a truncated response completes calls with complete arguments but not continued text', () => {
    const args = { type: 'response.function_call_arguments.done', item_id: 'fc_1', arguments: '{}' }
    const whole = decode([
      created,
      itemAdded(call),
      argumentsDelta('{}'),
      args,
      incomplete('max_output_tokens'),
    ])
    expect(blocksOf(whole)).toEqual([{ call: 'add', id: 'call_1', input: '{}' }])
    const part = { type: 'response.output_text.done', item_id: 'msg_1', text: 'One.' }
    const half = decode([
      created,
      itemAdded(message),
      textDelta('One.'),
      part,
      textDelta('Tw'),
      incomplete('max_output_tokens'),
    ])
    expect(blocksOf(half)).toEqual([{ text: 'One.' }, { text: 'Tw', cut: true }])
    const paragraph = (delta: string, index: number) => ({
      type: 'response.reasoning_summary_text.delta',
      item_id: 'rs_1',
      summary_index: index,
      delta,
    })
    const thought = decode([
      created,
      itemAdded(reasoning),
      paragraph('One.', 0),
      { type: 'response.reasoning_summary_text.done', item_id: 'rs_1', text: 'One.' },
      paragraph('Tw', 1),
      incomplete('max_output_tokens'),
    ])
    expect(blocksOf(thought)).toEqual([{ reasoning: ['One.', 'Tw'], cut: true }])
  })

  test('an incomplete item that is not the last does not break the order', () => {
    const half = { ...messageWith('Hal'), status: 'incomplete' }
    const decoded = decode([
      created,
      itemAdded(message),
      textDelta('Hal'),
      itemDone(half),
      itemAdded({ ...message, id: 'msg_2' }, { output_index: 1 }),
      textDelta('Whole', { item_id: 'msg_2', output_index: 1 }),
      itemDone({ ...messageWith('Whole'), id: 'msg_2' }, { output_index: 1 }),
      completed(),
    ])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hal' }, { text: 'Whole' }])
  })

  test('nothing follows a truncated call', () => {
    const half = { ...call, arguments: '{"a":', status: 'incomplete' }
    const decoded = decode([
      created,
      itemAdded(call),
      argumentsDelta('{"a":'),
      itemDone(half),
      itemAdded({ ...message, id: 'msg_2' }, { output_index: 1 }),
      textDelta('Whole', { item_id: 'msg_2', output_index: 1 }),
      itemAdded({ ...message, id: 'msg_3' }, { output_index: 2 }),
      textDelta('More', { item_id: 'msg_3', output_index: 2 }),
      incomplete('max_output_tokens'),
    ])
    expect(blocksOf(decoded)).toEqual([{ call: 'add', id: 'call_1', input: '{"a":', cut: true }])
    expect(finishOf(decoded)).toMatchObject({ reason: 'length' })
  })

  test('the worse status counts if event and response disagree', () => {
    const response = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    const decoded = decode([created, { type: 'response.completed', response }])
    expect(finishOf(decoded)).toMatchObject({ reason: 'length' })
    const error = { code: 'server_error', message: 'No.' }
    const bad = decode([
      created,
      { type: 'response.completed', response: { status: 'failed', error } },
    ])
    expect(bad.error).toMatchObject({ kind: 'upstream_error', wireCode: 'server_error' })
    const running = { status: 'in_progress', output: [messageWith('Hi')] }
    const stale = decode([created, { type: 'response.completed', response: running }])
    expect(finishOf(stale)).toMatchObject({ reason: 'stop' })
  })
})
