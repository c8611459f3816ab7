import { describe, expect, test } from 'bun:test'
import { expectInvalid, parse, refusalOf } from './parsing.ts'

const user = { role: 'user', content: 'Hello' }
const hello = parse({}).request.items
const itemsOf = (...input: unknown[]) => parse({ input }).request.items

describe('input items', () => {
  test('require no type if they have a role', () => {
    expect(
      itemsOf(
        { role: 'developer', content: 'Rules' },
        { type: 'message', role: 'system', content: 'More' },
        { type: null, ...user },
      ),
    ).toEqual([
      { type: 'message', role: 'developer', parts: [{ type: 'text', text: 'Rules' }] },
      { type: 'message', role: 'system', parts: [{ type: 'text', text: 'More' }] },
      { type: 'message', role: 'user', parts: [{ type: 'text', text: 'Hello' }] },
    ])
  })

  test('of a response are accepted as history', () => {
    const answered = [
      {
        id: 'rs_1',
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: 'First' }],
        content: [{ type: 'reasoning_text', text: 'First' }],
        encrypted_content: 'sealed',
      },
      {
        id: 'msg_1',
        type: 'message',
        status: 'completed',
        role: 'assistant',
        phase: 'commentary',
        content: [{ type: 'output_text', text: 'Looking.', annotations: [], logprobs: [] }],
      },
      {
        id: 'fc_1',
        type: 'function_call',
        status: 'completed',
        call_id: 'call_1',
        name: 'look',
        namespace: 'eyes',
        arguments: '{}',
      },
      { id: 'ctc_1', type: 'custom_tool_call', call_id: 'call_2', name: 'patch', input: '***' },
      {
        id: 'msg_2',
        type: 'message',
        role: 'assistant',
        content: [{ type: 'refusal', refusal: 'No.' }],
      },
    ]
    expect(itemsOf(user, ...answered).slice(1)).toEqual([
      { type: 'reasoning', summary: ['First'], text: 'First', sealed: 'sealed' },
      {
        type: 'message',
        role: 'assistant',
        phase: 'commentary',
        parts: [{ type: 'text', text: 'Looking.' }],
      },
      {
        type: 'tool-call',
        callId: 'call_1',
        name: 'look',
        namespace: 'eyes',
        form: 'function',
        arguments: '{}',
      },
      { type: 'tool-call', callId: 'call_2', name: 'patch', form: 'custom', arguments: '***' },
      { type: 'message', role: 'assistant', parts: [{ type: 'refusal', text: 'No.' }] },
    ])
  })

  test('with a tool output have the form of its call', () => {
    const items = itemsOf(
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '' },
      { type: 'custom_tool_call', call_id: 'b', name: 'g', input: '' },
      { type: 'function_call_output', call_id: 'a', output: '' },
      {
        type: 'function_call_output',
        call_id: 'b',
        output: [
          { type: 'input_text', text: 'seen' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
        ],
      },
    )
    expect(items.slice(2)).toEqual([
      { type: 'tool-result', callId: 'a', form: 'function', parts: [{ type: 'text', text: '' }] },
      {
        type: 'tool-result',
        callId: 'b',
        form: 'custom',
        parts: [
          { type: 'text', text: 'seen' },
          { type: 'image', url: 'data:image/png;base64,AAAA', detail: null },
        ],
      },
    ])
  })

  test('with a call without output are left to the adapter', () => {
    expect(
      itemsOf({ type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }),
    ).toHaveLength(1)
  })

  test('of native tools are kept with their outputs, without ids', () => {
    const search = { type: 'web_search_call', status: 'completed' }
    const shell = { type: 'local_shell_call', call_id: 'shell', action: {} }
    const output = {
      type: 'function_call_output',
      call_id: 'shell',
      output: 'done',
      status: 'completed',
    }
    const { request, ignoredItems } = parse({
      input: [user, { ...search, id: 'ws_1' }, shell, output],
    })
    expect<unknown>(request.items).toEqual([
      ...hello,
      { type: 'native', value: search },
      { type: 'native', value: shell },
      { type: 'native', value: output },
    ])
    expect(ignoredItems).toEqual([])
  })

  test('of unknown types are ignored with their outputs, and reported once', () => {
    const { request, ignoredItems } = parse({
      input: [
        user,
        { type: 'acme:thing', role: 'user', content: 'not a message' },
        { type: 'acme:thing', call_id: 'thing' },
        { type: 'function_call_output', call_id: 'thing', output: 'done' },
      ],
    })
    expect(request.items).toEqual(hello)
    expect(ignoredItems).toEqual(['acme:thing', 'function_call_output'])
  })

  test('without content are ignored: a turn that was cut off at its start', () => {
    expect(
      itemsOf(
        user,
        { type: 'reasoning', summary: [] },
        { type: 'message', role: 'assistant', content: [], status: 'incomplete' },
        { role: 'assistant', content: '' },
      ),
    ).toEqual(hello)
  })
})

describe('input items that are refused', () => {
  const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }
  const rows: [input: unknown[], param: string, predicate: string][] = [
    [[user, null], 'input[1]', 'must be an object'],
    [['Hello'], 'input[0]', 'must be an object'],
    [[[user]], 'input[0]', 'must be an object'],
    [[{ content: 'Hello' }], 'input[0]', 'must have a type or a role'],
    [[{}], 'input[0]', 'must have a type or a role'],
    [[{ type: 7 }], 'input[0].type', 'must be the name of an item type'],
    [[{ type: '' }], 'input[0].type', 'must be the name of an item type'],
    [
      [{ role: 'tool', content: '' }],
      'input[0].role',
      'must be one of user, assistant, system, developer',
    ],
    [[{ role: 'user' }], 'input[0].content', 'is required'],
    [[{ role: 'user', content: null }], 'input[0].content', 'is required'],
    [[{ type: 'message', content: 'Hello' }], 'input[0].role', 'is required'],
    [[{ ...call, arguments: {} }], 'input[0].arguments', 'must be a string'],
    [[{ ...call, call_id: '' }], 'input[0].call_id', 'must be a non-empty string'],
    [[{ ...call, name: undefined }], 'input[0].name', 'is required'],
    [
      [user, { type: 'function_call_output', call_id: 'b', output: '' }],
      'input[1].call_id',
      'is "b", but no earlier call has this id',
    ],
    [
      [{ type: 'custom_tool_call_output', call_id: 'a', output: '' }, call],
      'input[0].call_id',
      'is "a", but no earlier call has this id',
    ],
    [[call, { type: 'function_call_output', call_id: 'a' }], 'input[1].output', 'is required'],
    [
      [call, { type: 'function_call_output', call_id: 'a', output: [{ type: 'audio' }] }],
      'input[1].output[0].type',
      'is "audio", which is not supported',
    ],
    [[{ type: 'reasoning', summary: 'x' }], 'input[0].summary', 'must be an array of objects'],
    [[{ type: 'acme:thing' }], 'input', 'has no item for a model'],
    [Array(21).fill(user), 'input', 'must not have more than 20 items, including its history'],
  ]
  for (const [input, param, predicate] of rows) {
    test(`${param} ${predicate}`, () => {
      expectInvalid(refusalOf({ input }), param, `${param} ${predicate}.`)
    })
  }
})

describe('a reference to an unknown item', () => {
  test.each([
    [{ type: 'item_reference', id: 'msg_1' }],
    [{ type: null, id: 'msg_1' }],
    [{ id: 'msg_1' }],
  ])('is 404: %j', (reference) => {
    expect(refusalOf({ input: [{ role: 'user', content: 'Hello' }, reference] })).toMatchObject({
      status: 404,
      type: 'not_found_error',
      wireCode: 'not_found',
      param: 'input[1].id',
      message:
        'Item with id "msg_1" not found. Items of responses with store: false and deleted items cannot be referenced; send the item itself.',
    })
  })

  test('a long id is shortened in the message', () => {
    const { message } = refusalOf({ input: [{ type: 'item_reference', id: 'x'.repeat(100_000) }] })
    expect(message.length).toBeLessThan(250)
  })
})
