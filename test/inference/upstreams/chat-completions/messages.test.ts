import { describe, expect, test } from 'bun:test'
import type { ContentPart, GenerationRequest, RequestItem } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeMessages } from '#inference/upstreams/chat-completions/messages.ts'
import { defaultQuirks, makeRequest, userMessage } from '#test/support/generation.ts'

function encode(given: Partial<GenerationRequest>, quirks: Partial<UpstreamQuirks> = {}) {
  const request = makeRequest(given)
  return encodeMessages(request, {
    quirks: { ...defaultQuirks, ...quirks },
    targetName: 'upstream/m',
    toolNames: createToolNames(request),
  })
}

const says = (role: 'system' | 'developer' | 'assistant', text: string): RequestItem => ({
  type: 'message',
  role,
  parts: [{ type: 'text', text }],
})

const thinks = (text: string, summary: string[] = []): RequestItem => ({
  type: 'reasoning',
  summary,
  text,
})

const calls = (callId: string, name: string, text = '{}'): RequestItem => ({
  type: 'tool-call',
  callId,
  name,
  form: 'function',
  arguments: text,
})

const returns = (callId: string, ...parts: (string | ContentPart)[]): RequestItem => ({
  type: 'tool-result',
  callId,
  form: 'function',
  parts: parts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part)),
})

const image: ContentPart = { type: 'image', url: 'data:image/png;base64,AA==', detail: null }
const wireImage = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }

const wireCall = (id: string, name: string, text = '{}') => ({
  id,
  type: 'function' as const,
  function: { name, arguments: text },
})

describe('system messages', () => {
  test('instructions and leading system and developer messages form one system message', () => {
    const items = [says('developer', 'Be kind.'), says('system', 'Be brief.'), userMessage('Hi')]
    expect(encode({ instructions: 'You are a demo.', items })).toEqual([
      { role: 'system', content: 'You are a demo.\n\nBe kind.\n\nBe brief.' },
      { role: 'user', content: 'Hi' },
    ])
  })

  test('leading developer messages keep their role if the upstream knows it', () => {
    const items = [says('developer', 'Be kind.'), says('developer', 'Be brief.')]
    expect(encode({ items }, { developerRole: true })).toEqual([
      { role: 'developer', content: 'Be kind.\n\nBe brief.' },
    ])
  })

  test('an image in one is rejected', () => {
    const items: RequestItem[] = [{ type: 'message', role: 'system', parts: [image] }]
    expect(() => encode({ items })).toThrow('Only a user message can hold image content.')
  })
})

describe('content', () => {
  const content = (...parts: ContentPart[]) =>
    encode({ items: [{ type: 'message', role: 'user', parts }] })[0]?.content

  test('a single text is a string, several parts are a list', () => {
    expect(content({ type: 'text', text: 'Hi' })).toBe('Hi')
    expect(content()).toBe('')
    expect(content({ type: 'text', text: 'Look:' }, image)).toEqual([
      { type: 'text', text: 'Look:' },
      wireImage,
    ])
    expect(content(image)).toEqual([wireImage])
  })

  test('several texts become one string', () => {
    expect(content({ type: 'text', text: 'One.' }, { type: 'text', text: 'Two.' })).toBe(
      'One.\n\nTwo.',
    )
  })

  test('the detail of an image is sent, `original` as `high`', () => {
    const detailOf = (detail: string) => content({ ...image, detail })
    expect(detailOf('low')).toMatchObject([{ image_url: { detail: 'low' } }])
    expect(detailOf('original')).toMatchObject([{ image_url: { detail: 'high' } }])
  })

  test('a file is sent only to upstreams that accept files', () => {
    const url = 'data:application/pdf;base64,AA=='
    const file: ContentPart = { type: 'file', data: url, url: null, filename: 'a.pdf' }
    const items: RequestItem[] = [{ type: 'message', role: 'user', parts: [file] }]
    expect(encode({ items }, { files: true })).toEqual([
      {
        role: 'user',
        content: [{ type: 'file', file: { file_data: url, filename: 'a.pdf' } }],
      },
    ])
    expect(() => encode({ items })).toThrow(
      'The model does not accept files, but the input contains the file a.pdf.',
    )
    const remote: ContentPart = { ...file, data: null, url: 'https://example.com/a.pdf' }
    const remoteItems: RequestItem[] = [{ type: 'message', role: 'user', parts: [remote] }]
    expect(() => encode({ items: remoteItems }, { files: true })).toThrow('send its content')
  })

  test('a refusal in the history is text', () => {
    const items: RequestItem[] = [
      { type: 'message', role: 'assistant', parts: [{ type: 'refusal', text: 'No.' }] },
    ]
    expect(encode({ items })).toEqual([{ role: 'assistant', content: 'No.' }])
  })
})

describe('assistant turns', () => {
  test('reasoning, text and parallel calls form one message, followed by their results', () => {
    const items = [
      userMessage('Weather?'),
      thinks('Two cities.'),
      says('assistant', 'I will look.'),
      calls('a', 'weather', '{"city":"Bonn"}'),
      calls('b', 'weather', '{"city":"Rome"}'),
      returns('b', 'hot'),
      returns('a', 'wet', 'and cold'),
      says('assistant', 'Wet here, hot there.'),
      userMessage('Thanks'),
    ]
    expect(encode({ items })).toEqual([
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'I will look.',
        reasoning: 'Two cities.',
        reasoning_content: 'Two cities.',
        tool_calls: [
          wireCall('a', 'weather', '{"city":"Bonn"}'),
          wireCall('b', 'weather', '{"city":"Rome"}'),
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'wet\nand cold' },
      { role: 'tool', tool_call_id: 'b', content: 'hot' },
      { role: 'assistant', content: 'Wet here, hot there.' },
      { role: 'user', content: 'Thanks' },
    ])
  })

  test('calls separated by a result form two turns', () => {
    const items = [calls('a', 'look'), returns('a', '1'), calls('b', 'look'), returns('b', '2')]
    expect(encode({ items })).toEqual([
      { role: 'assistant', content: '', tool_calls: [wireCall('a', 'look')] },
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'assistant', content: '', tool_calls: [wireCall('b', 'look')] },
      { role: 'tool', tool_call_id: 'b', content: '2' },
    ])
  })

  test('a call id that is reused in a later turn is matched with its own result', () => {
    const items = [calls('a', 'look'), returns('a', '1'), calls('a', 'look'), returns('a', '2')]
    const results = encode({ items }).filter(({ role }) => role === 'tool')
    expect(results.map(({ content }) => content)).toEqual(['1', '2'])
  })

  test('reasoning is sent in the configured fields only', () => {
    const items = [thinks('', ['One.', 'Two.']), says('assistant', 'Yes.')]
    const fields = (reasoningFields: UpstreamQuirks['reasoningFields']) =>
      encode({ items }, { reasoningFields })
    expect(fields(['reasoning_content'])).toEqual([
      { role: 'assistant', content: 'Yes.', reasoning_content: 'One.\n\nTwo.' },
    ])
    expect(fields([])).toEqual([{ role: 'assistant', content: 'Yes.' }])
  })

  test('reasoning without output is dropped', () => {
    expect(encode({ items: [userMessage('Hi'), thinks('Hm.'), userMessage('Well?')] })).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'user', content: 'Well?' },
    ])
  })

  test('a call without a result gets a placeholder result before the next message', () => {
    expect(encode({ items: [calls('a', 'look'), userMessage('Stop.')] })).toEqual([
      { role: 'assistant', content: '', tool_calls: [wireCall('a', 'look')] },
      { role: 'tool', tool_call_id: 'a', content: 'aborted' },
      { role: 'user', content: 'Stop.' },
    ])
  })

  test('the result of a failed tool is marked', () => {
    const failed = (...parts: (string | ContentPart)[]) => ({
      ...returns('a', ...parts),
      isError: true,
    })
    const resultText = (item: RequestItem) =>
      encode({ items: [calls('a', 'look'), item] })[1]?.content
    expect(resultText(failed('No such city.', 'Sorry.'))).toBe(
      '[The tool failed]\nNo such city.\nSorry.',
    )
    expect(resultText(failed())).toBe('[The tool failed]')
    expect(resultText(failed(image))).toBe(
      '[The tool failed]\n[See the next message for what was returned.]',
    )
  })

  test('a result without a call is rejected', () => {
    expect(() => encode({ items: [userMessage('Hi'), returns('x', '1')] })).toThrow(
      'The input holds an output for the tool call x, but no such call.',
    )
  })

  test('images in results follow in a user message after all results', () => {
    const items = [calls('a', 'draw'), calls('b', 'look'), returns('a', image), returns('b', 'ok')]
    expect(encode({ items }).slice(1)).toEqual([
      {
        role: 'tool',
        tool_call_id: 'a',
        content: '[See the next message for what was returned.]',
      },
      { role: 'tool', tool_call_id: 'b', content: 'ok' },
      {
        role: 'user',
        content: [{ type: 'text', text: '[Returned by the tool draw]' }, wireImage],
      },
    ])
  })

  test('calls of custom and namespaced tools, and without arguments, are sent as functions', () => {
    const items: RequestItem[] = [
      { type: 'tool-call', callId: 'a', name: 'now', form: 'function', arguments: '' },
      { type: 'tool-call', callId: 'b', name: 'shell', form: 'custom', arguments: 'ls "x"' },
      {
        type: 'tool-call',
        callId: 'c',
        name: 'read',
        namespace: 'files',
        form: 'function',
        arguments: '{}',
      },
    ]
    expect(encode({ items })[0]).toEqual({
      role: 'assistant',
      content: '',
      tool_calls: [
        wireCall('a', 'now'),
        wireCall('b', 'shell', '{"input":"ls \\"x\\""}'),
        wireCall('c', 'files__read'),
      ],
    })
  })
})
