import { describe, expect, test } from 'bun:test'
import { parseCreateResponse } from '#surfaces/responses/parse.ts'
import { context, expectInvalid, parse, refusalOf } from './parsing.ts'

const user = { role: 'user', content: 'Hello' }
const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }
const itemsOf = (...input: unknown[]) => parse({ input }).request.items

describe('content parts', () => {
  test('are text, images and files, in the given order', () => {
    const content = [
      { type: 'input_text', text: 'What is this?' },
      { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'high' },
      { type: 'input_image', image_url: 'DATA:image/png;base64,AAAA', file_id: null },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' },
      { type: 'input_file', file_url: 'http://example.com/b.pdf' },
    ]
    expect(itemsOf({ role: 'user', content })).toEqual([
      {
        type: 'message',
        role: 'user',
        parts: [
          { type: 'text', text: 'What is this?' },
          { type: 'image', url: 'https://example.com/a.png', detail: 'high' },
          { type: 'image', url: 'DATA:image/png;base64,AAAA', detail: null },
          {
            type: 'file',
            data: 'data:application/pdf;base64,AAAA',
            url: null,
            filename: 'a.pdf',
          },
          { type: 'file', data: null, url: 'http://example.com/b.pdf', filename: null },
        ],
      },
    ])
  })
})

describe('content that is refused', () => {
  const saying = (content: unknown) => [{ role: 'user', content }]
  const rows: [input: unknown[], param: string, predicate: string][] = [
    [saying([]), 'input[0].content', 'must not be empty'],
    [saying({}), 'input[0].content', 'must be a string or an array of objects'],
    [saying([null]), 'input[0].content[0]', 'must be an object'],
    [saying([{ text: 'Hello' }]), 'input[0].content[0].type', 'is required'],
    [saying([{ type: 'input_text' }]), 'input[0].content[0].text', 'is required'],
    [saying([{ type: 'input_text', text: 7 }]), 'input[0].content[0].text', 'must be a string'],
    [
      saying([{ type: 'input_video', video_url: 'https://example.com/a.mp4' }]),
      'input[0].content[0].type',
      'is "input_video", which is not supported',
    ],
    [
      saying([{ type: 'refusal', refusal: 'No.' }]),
      'input[0].content[0]',
      'is a refusal, which is only allowed in assistant messages',
    ],
    [saying([{ type: 'input_image' }]), 'input[0].content[0]', 'must have image_url or file_id'],
    [
      [user, ...saying([{ type: 'input_image', image_url: 'file:///etc/passwd' }])],
      'input[1].content[0].image_url',
      'must be an http, https or data URL',
    ],
    [
      saying([{ type: 'input_image', image_url: { url: 'https://example.com/a.png' } }]),
      'input[0].content[0].image_url',
      'must be an http, https or data URL',
    ],
    [
      saying([{ type: 'input_image', image_url: 'data:,', detail: 'huge' }]),
      'input[0].content[0].detail',
      'must be one of low, high, auto, original',
    ],
    [
      saying([{ type: 'input_file', filename: 'a.pdf' }]),
      'input[0].content[0]',
      'must have file_data, file_url or file_id',
    ],
  ]
  for (const [input, param, predicate] of rows) {
    test(`${param} ${predicate}`, () => {
      expectInvalid(refusalOf({ input }), param, `${param} ${predicate}.`)
    })
  }
})

describe('the limit of input text', () => {
  const image = { type: 'input_image', image_url: `data:image/png;base64,${'A'.repeat(5000)}` }
  const file = { type: 'input_file', file_data: 'A'.repeat(5000) }

  test('is a number of characters, without images and files', () => {
    expect(parse({ input: 'é'.repeat(2000) }).request.items).toHaveLength(1)
    const content = [{ type: 'input_text', text: 'x'.repeat(2000) }, image, file]
    expect(itemsOf({ role: 'user', content })).toHaveLength(1)
  })

  test.each([
    ['a text', 'x'.repeat(2001)],
    ['one message', [{ role: 'user', content: 'x'.repeat(2001) }]],
    ['many messages', Array(11).fill({ role: 'user', content: 'x'.repeat(200) })],
    ['arguments', [{ ...call, arguments: 'x'.repeat(2001) }]],
    [
      'a tool output',
      [call, { type: 'function_call_output', call_id: 'a', output: 'x'.repeat(1999) }],
    ],
  ])('is exceeded by %s', (_, input) => {
    expect(refusalOf({ input })).toMatchObject({
      kind: 'request_too_large',
      status: 413,
      param: 'input',
      message: 'The text of the input exceeds the limit of 2000 characters.',
    })
  })

  test('is ten mebibytes by default', () => {
    const defaults = { inputCharsMax: 10_485_760, inputItemsMax: 10_000, toolsMax: 1024 }
    const body = (chars: number) => ({ model: 'demo', input: 'x'.repeat(chars) })
    expect(
      parseCreateResponse(body(10_485_760), { ...context, limits: defaults }).request.items,
    ).toHaveLength(1)
    expect(() => parseCreateResponse(body(10_485_761), { ...context, limits: defaults })).toThrow(
      'The text of the input exceeds the limit of 10485760 characters.',
    )
  })
})
