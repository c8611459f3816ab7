import { describe, expect, test } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import {
  checkBeginning,
  checkErrorMessage,
  checkStream,
  checkTail,
  checkTurn,
  type Frame,
} from '#test/support/response-frames.ts'
import { number, sampleFrames, wireOf } from '#test/support/sample-stream.ts'
import { checkWithStrictClient } from '#test/support/strict-client.ts'

/** The validation of every stream in all tests accepts valid streams only. */

type Change = (frame: Frame) => JsonObject

const whole = sampleFrames()
const itemType = (frame: Frame) => (isRecord(frame['item']) ? String(frame['item']['type']) : '')
const find = (type: string, of = '', nth = 0) =>
  whole.flatMap((frame, at) =>
    frame.type === `response.${type}` && (of === '' || itemType(frame) === of) ? [at] : [],
  )[nth] ?? -1
const replace = (at: number, change: Change) =>
  number(whole.map((frame, place) => (place === at ? { ...frame, ...change(frame) } : frame)))
const without = (at: number) => number(whole.toSpliced(at, 1))
const twice = (at: number) => number(whole.toSpliced(at, 0, ...whole.slice(at, at + 1)))
const swapped = (at: number) => number(whole.toSpliced(at, 2, ...whole.slice(at, at + 2).reverse()))
const inResponse =
  (fields: JsonObject): Change =>
  ({ response }) => ({
    response: { ...(isRecord(response) ? response : {}), ...fields },
  })
const inItem =
  (fields: JsonObject): Change =>
  ({ item }) => ({
    item: { ...(isRecord(item) ? item : {}), ...fields },
  })
const last = whole.length - 1
const insert = (at: number, frame: Frame) => number(whole.toSpliced(at, 0, frame))

const broken: [what: string, frames: () => Frame[]][] = [
  ['a counter that begins at 1', () => number(whole, 1)],
  ['a missing number', () => whole.toSpliced(5, 1)],
  ['a duplicated number', () => whole.toSpliced(5, 0, ...whole.slice(5, 6))],
  ['no response.created', () => without(0)],
  ['response.created twice', () => twice(0)],
  ['no terminal event', () => without(last)],
  ['two terminal events', () => twice(last)],
  ['an item before the response is in progress', () => without(find('in_progress'))],
  ['an event of a vendor', () => insert(4, { type: 'acme:trace' })],
  ['an event between items', () => insert(find('output_item.added'), { type: 'keepalive' })],
  ['a response id that changes', () => replace(last, inResponse({ id: 'resp_2' }))],
  ['a model that changes', () => replace(1, inResponse({ model: 'n' }))],
  ['a status that does not match its event', () => replace(last, inResponse({ status: 'failed' }))],
  [
    'a queued response with the status in_progress',
    () => replace(1, inResponse({ status: 'in_progress' })),
  ],
  ['a completed response before its end', () => replace(2, inResponse({ completed_at: 2 }))],
  ['usage before the end', () => replace(2, inResponse({ usage: {} }))],
  ['output at the beginning', () => replace(0, inResponse({ output: [{}] }))],
  ['no output at the end', () => replace(last, inResponse({ output: [] }))],
  ['an item that is never added', () => without(find('output_item.added', 'message'))],
  ['an item that is never done', () => without(find('output_item.done', 'message'))],
  ['an item that is added twice', () => twice(find('output_item.added', 'message'))],
  ['an index gap', () => replace(find('output_text.delta'), () => ({ output_index: 20 }))],
  ['a delta of another item', () => replace(find('output_text.delta'), () => ({ item_id: 'x' }))],
  [
    'an item that ends with another id',
    () => replace(find('output_item.done'), inItem({ id: 'x' })),
  ],
  [
    'an item that ends with another type',
    () => replace(find('output_item.done'), inItem({ type: 'message' })),
  ],
  ['two items with one id', () => sameIds()],
  ['an item without its end', () => everyMessage({ status: 'in_progress' })],
  ['an incomplete item in a completed response', () => everyMessage({ status: 'incomplete' })],
  ['a text without content_part.added', () => without(find('content_part.added'))],
  ['a text without content_part.done', () => without(find('content_part.done'))],
  ['a text without output_text.done', () => without(find('output_text.done'))],
  ['a delta after its end', () => swapped(find('output_text.annotation.added'))],
  ['a missing delta', () => without(find('output_text.delta'))],
  ['a duplicated delta', () => twice(find('output_text.delta'))],
  [
    'a different text at the end of the part',
    () => replace(find('output_text.done'), () => ({ text: 'No.' })),
  ],
  ['another content_index', () => replace(find('output_text.delta'), () => ({ content_index: 1 }))],
  [
    'missing log probabilities',
    () => replace(find('output_text.delta'), () => ({ logprobs: [{}] })),
  ],
  ['a missing citation', () => without(find('output_text.annotation.added'))],
  [
    'another annotation_index',
    () => replace(find('output_text.annotation.added'), () => ({ annotation_index: 1 })),
  ],
  [
    'a message of another role',
    () => replace(find('output_item.added', 'message'), inItem({ role: 'user' })),
  ],
  ['a summary without its part', () => without(find('reasoning_summary_part.added'))],
  [
    'a summary_index gap',
    () => replace(find('reasoning_summary_text.delta'), () => ({ summary_index: 1 })),
  ],
  [
    'raw reasoning',
    () =>
      replace(find('reasoning_summary_text.delta'), () => ({
        type: 'response.reasoning_text.delta',
      })),
  ],
  [
    'a different summary at its end',
    () => replace(find('reasoning_summary_text.done'), () => ({ text: 'No.' })),
  ],
  ['arguments that differ from their deltas', () => without(find('function_call_arguments.delta'))],
  ['arguments without their end', () => without(find('function_call_arguments.done'))],
  ['a call without a call_id', () => everyCall({ call_id: '' })],
  [
    'custom call input that differs from its deltas',
    () => without(find('custom_tool_call_input.delta')),
  ],
  [
    'MCP call arguments that differ from their deltas',
    () => without(find('mcp_call_arguments.delta')),
  ],
  ['arguments of an MCP call without their end', () => without(find('mcp_call_arguments.done'))],
  [
    'an unknown progress event',
    () =>
      replace(find('file_search_call.searching'), () => ({
        type: 'response.file_search_call.failed',
      })),
  ],
  [
    'a progress event of another type',
    () =>
      replace(find('file_search_call.searching'), () => ({
        type: 'response.web_search_call.searching',
      })),
  ],
  [
    'a compaction without its content',
    () => replace(find('output_item.done', 'compaction'), inItem({ encrypted_content: null })),
  ],
  [
    'an approval request without its arguments',
    () => replace(find('output_item.done', 'mcp_approval_request'), inItem({ arguments: null })),
  ],
  [
    'a list of tools without tools',
    () => replace(find('output_item.done', 'mcp_list_tools'), inItem({ tools: null })),
  ],
  [
    'a heartbeat without an item',
    () => replace(find('in_progress', '', 1), inResponse({ output: [] })),
  ],
]

/** The frames with these fields in every frame of one item. */
function everywhere(index: number, fields: JsonObject): Frame[] {
  return whole.map((frame) => {
    const { item, response, output_index: at } = frame
    if (isRecord(item) && at === index && frame.type.endsWith('done')) {
      return { ...frame, item: { ...item, ...fields } }
    }
    const output = isRecord(response) && Array.isArray(response['output']) ? response['output'] : []
    if (output.length <= index) return frame
    const changed = output.with(index, { ...output[index], ...fields })
    return { ...frame, response: { ...(isRecord(response) ? response : {}), output: changed } }
  })
}

function indexOf(type: string): number {
  return Number(whole[find('output_item.done', type)]?.['output_index'])
}

function everyMessage(fields: JsonObject): Frame[] {
  return everywhere(indexOf('message'), fields)
}

function everyCall(fields: JsonObject): Frame[] {
  const frames = everywhere(indexOf('function_call'), fields)
  const added = find('output_item.added', 'function_call')
  return frames.map((frame, at) => (at === added ? { ...frame, ...inItem(fields)(frame) } : frame))
}

function sameIds(): Frame[] {
  return JSON.parse(JSON.stringify(whole).replaceAll('"item_1"', '"item_0"'))
}

describe('the validation of streams', () => {
  test('accepts a stream with an item of every kind, as does the strictest client', async () => {
    const { frames, response } = checkStream(wireOf(whole))
    expect(frames).toEqual(whole)
    await checkWithStrictClient(frames, response)
  })

  test.each(broken)('rejects %s', (_, frames) => {
    expect(() => checkTurn(frames())).toThrow()
  })

  test('accepts a stream resumed after any frame, and nothing else', () => {
    for (const after of whole.keys()) {
      const tail = whole.slice(after + 1)
      expect(checkTail(wireOf(tail), after).frames).toEqual(tail)
      if (tail.length < 3) continue
      expect(() => checkTail(wireOf(tail), after + 1)).toThrow()
      expect(() => checkTail(wireOf(tail.slice(0, -1)), after)).toThrow()
      expect(() => checkTail(wireOf(tail.toSpliced(1, 1)), after)).toThrow()
    }
  })

  test('accepts the beginning of a stream up to any frame, and nothing else', () => {
    for (const count of whole.keys()) {
      const wire = wireOf(whole.slice(0, count)).replace('data: [DONE]\n\n', '')
      expect(checkBeginning(`${wire}event: resp`)).toHaveLength(count)
      if (count > 1) expect(() => checkBeginning(wire.slice(wire.indexOf('\n\n') + 2))).toThrow()
    }
  })

  const wires: [what: string, wire: string][] = [
    ['a stream without [DONE]', wireOf(whole).replace('data: [DONE]\n\n', '')],
    ['a stream that continues after [DONE]', `${wireOf(whole)}: more\n\n`],
    ['an event with a different name', wireOf(whole).replace('event: response.c', 'event: c')],
    ['an event without a name', wireOf(whole).replace('event: response.created\n', '')],
    ['a comment', wireOf(whole).replace('\n\n', '\n\n: alive\n\n')],
  ]
  test.each(wires)('rejects %s', (_, wire) => {
    expect(() => checkStream(wire)).toThrow()
  })
})

describe('the validation of endings', () => {
  const short = whole.slice(0, 3)
  const error = { type: 'server_error', code: 'server_error', message: 'It failed.', param: null }
  const wireError = { ...error, error }
  const state = (fields: JsonObject) => ({ ...Object(short[2]?.['response']), ...fields })
  const failed = (event: JsonObject, fields: JsonObject) =>
    number([
      ...short,
      { ...event, type: 'error' },
      { type: 'response.failed', response: state({ status: 'failed', error, ...fields }) },
    ])
  const ended = (fields: JsonObject) =>
    number([...short, { type: 'response.incomplete', response: state(fields) }])
  const limited = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }

  const right: [what: string, frames: Frame[]][] = [
    ['a failure', failed(wireError, {})],
    ['a truncated response', ended(limited)],
    ['a cancelled response', ended({ status: 'cancelled' })],
    [
      'a response cancelled while queued',
      number([...short.slice(0, 2), ...ended({ status: 'cancelled' }).slice(-1)]),
    ],
  ]
  test.each(right)('accepts %s', (_, frames) => {
    expect(checkTurn(frames).frames).toEqual(frames)
  })

  const wrong: [what: string, frames: Frame[]][] = [
    ['a failure without an error event', number(failed(wireError, {}).toSpliced(3, 1))],
    ['an error event with flat fields only', failed(error, {})],
    ['an error event with nested fields only', failed({ error }, {})],
    [
      'an error event with a different error',
      failed(wireError, { error: { ...error, message: 'Else.' } }),
    ],
    ['a failure without its error', failed(wireError, { error: null })],
    ['an error event without a following event', failed(wireError, {}).slice(0, -1)],
    ['an incomplete response without a reason', ended({ ...limited, incomplete_details: null })],
    ['a cancelled response with a reason', ended({ ...limited, status: 'cancelled' })],
    ['another status', ended({ status: 'completed' })],
  ]
  test.each(wrong)('rejects %s', (_, frames) => {
    expect(() => checkTurn(frames)).toThrow()
  })

  test('accepts a WebSocket error frame with its status and the complete error', () => {
    expect(checkErrorMessage({ type: 'error', status: 400, error })).toEqual(error)
    expect(() => checkErrorMessage({ type: 'error', error })).toThrow()
    expect(() => checkErrorMessage({ type: 'error', status: 400, error: {} })).toThrow()
  })
})
