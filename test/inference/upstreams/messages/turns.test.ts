import { describe, expect, test } from 'bun:test'
import type { ContentPart, RequestItem } from '#inference/request.ts'
import type { WireBlock } from '#inference/upstreams/messages/wire.ts'
import type { JsonObject } from '#lib/json.ts'
import { userMessage } from '#test/support/generation.ts'
import { bodyOf, target } from './requests.ts'

const turns = (items: RequestItem[], quirks = {}) => bodyOf({ items }, quirks).messages
const say = (role: 'user' | 'assistant' | 'system' | 'developer', text: string): RequestItem => ({
  type: 'message',
  role,
  parts: [{ type: 'text', text }],
})
const call = (callId: string, args = '{}'): RequestItem => ({
  type: 'tool-call',
  callId,
  name: 'look',
  form: 'function',
  arguments: args,
})
const result = (callId: string, text = 'seen', more: object = {}): RequestItem => ({
  type: 'tool-result',
  callId,
  form: 'function',
  parts: text === '' ? [] : [{ type: 'text', text }],
  ...more,
})
const text = (said: string): WireBlock => ({ type: 'text', text: said })
const used = (id: string, input: JsonObject = {}): WireBlock => ({
  type: 'tool_use',
  id,
  name: 'look',
  input,
})
const seen = (id: string, content: WireBlock[] = [text('seen')]): WireBlock => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
})

describe('turns alternate', () => {
  test('consecutive messages of one side form one turn', () => {
    const items = [say('user', 'A'), say('user', 'B'), say('assistant', 'C'), say('assistant', 'D')]
    expect(turns([...items, say('user', 'E')])).toEqual([
      { role: 'user', content: [text('A'), text('B')] },
      { role: 'assistant', content: [text('C'), text('D')] },
      { role: 'user', content: [text('E')] },
    ])
  })

  test('empty texts, and turns of only empty texts, are dropped', () => {
    expect(turns([say('user', 'A'), say('assistant', ''), say('user', '')])).toEqual([
      { role: 'user', content: [text('A')] },
    ])
  })

  test('trailing white space of a prefill is trimmed', () => {
    expect(turns([say('user', 'A'), say('assistant', 'B: \n')]).at(-1)).toEqual({
      role: 'assistant',
      content: [text('B:')],
    })
    expect(turns([say('user', 'A'), say('assistant', ' ')])).toHaveLength(1)
  })
})

describe('calls and their results', () => {
  test('results come first in the next turn, in the order of their calls', () => {
    const items = [say('user', 'A'), say('assistant', 'B'), call('one'), call('two')]
    expect(turns([...items, say('user', 'C'), result('two'), result('one')])).toEqual([
      { role: 'user', content: [text('A')] },
      { role: 'assistant', content: [text('B'), used('one'), used('two')] },
      { role: 'user', content: [seen('one'), seen('two'), text('C')] },
    ])
  })

  test('calls separated by a result form two turns', () => {
    const items = [say('user', 'A'), call('one'), result('one'), call('two'), result('two')]
    expect(turns(items).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ])
  })

  test('a missing result gets a placeholder', () => {
    expect(turns([say('user', 'A'), call('one'), say('user', 'B')]).at(-1)).toEqual({
      role: 'user',
      content: [{ ...seen('one', [text('aborted')]), is_error: true }, text('B')],
    })
  })

  test('a result without its call is rejected', () => {
    expect(() => turns([say('user', 'A'), result('one')])).toThrow('no such call')
  })

  test('a failed result is marked, an empty result stays empty', () => {
    const items = [say('user', 'A'), call('one'), result('one', '', { isError: true })]
    expect(turns(items).at(-1)).toEqual({
      role: 'user',
      content: [{ ...seen('one', []), is_error: true }],
    })
  })

  test('images of a tool result stay in the result', () => {
    const picture: ContentPart = { type: 'image', url: 'data:image/png;base64,AAAA', detail: null }
    const returned = { ...result('one'), parts: [{ type: 'text', text: 'seen' }, picture] }
    expect(turns([say('user', 'A'), call('one'), returned as RequestItem]).at(-1)).toMatchObject({
      content: [{ content: [text('seen'), { type: 'image' }] }],
    })
  })

  test('ids are legal and unique', () => {
    const ids = ['functions.look:0', 'ok-1', 'ok-1', 'functions look 0']
    const items = ids.flatMap((id) => [call(id), result(id)])
    const wire = turns([say('user', 'A'), ...items]).flatMap(({ content }) =>
      Array.isArray(content)
        ? content.flatMap((block) => ('id' in block ? [block['id']] : []))
        : [],
    )
    expect(new Set(wire).size).toBe(4)
    for (const id of wire) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/)
    expect(wire.slice(1, 3)).toEqual(['ok-1', 'ok-1_2'])
  })

  test.each([
    ['{"a":1}', { a: 1 }],
    ['', {}],
    ['{"a":', { input: '{"a":' }],
    ['[1]', { input: '[1]' }],
  ])('the arguments %p become an object', (args, input) => {
    expect(turns([say('user', 'A'), call('one', args), result('one')])[1]).toEqual({
      role: 'assistant',
      content: [used('one', input)],
    })
  })
})

describe('system messages', () => {
  test('at the head become the system prompt', () => {
    const items = [say('system', 'B'), say('developer', 'C'), userMessage('Hi')]
    expect(bodyOf({ instructions: 'A', items })).toMatchObject({
      system: 'A\n\nB\n\nC',
      messages: [{ role: 'user', content: [text('Hi')] }],
    })
    expect(bodyOf({ items: [userMessage('Hi')] })).not.toHaveProperty('system')
    const withEmpty = [say('system', ''), say('system', 'B'), userMessage('Hi')]
    expect(bodyOf({ items: withEmpty })).toMatchObject({ system: 'B' })
  })

  const late = text('[System instruction]\nBe brief.')

  test('late ones keep their position if the upstream accepts that', () => {
    const items = [say('user', 'A'), say('system', 'Be brief.'), say('user', 'B')]
    expect(turns(items, { lateSystemMessages: true })[1]).toEqual({
      role: 'system',
      content: 'Be brief.',
    })
    const empty = [say('user', 'A'), say('system', ''), say('user', 'B')]
    expect(turns(empty, { lateSystemMessages: true })).toEqual([
      { role: 'user', content: [text('A'), text('B')] },
    ])
    const between = [say('user', 'A'), call('one'), say('system', 'Be brief.'), result('one')]
    expect(turns(between, { lateSystemMessages: true }).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'system',
    ])
  })

  test('become part of the user turn where system messages are not accepted', () => {
    const behind = [say('user', 'A'), say('developer', 'Be brief.'), say('assistant', 'B')]
    expect(turns(behind)[0]).toEqual({ role: 'user', content: [text('A'), late] })
    const before = [say('user', 'A'), say('assistant', 'B'), say('system', 'Be brief.')]
    expect(turns([...before, say('user', 'C')])[2]).toEqual({
      role: 'user',
      content: [late, text('C')],
    })
  })

  test('joins the last result of a turn of only results', () => {
    const items = [say('user', 'A'), call('one'), result('one'), say('system', 'Be brief.')]
    expect(turns(items).at(-1)).toEqual({
      role: 'user',
      content: [seen('one', [text('seen'), late])],
    })
  })
})

describe('thinking', () => {
  const thought = (sealed: string | undefined, sealedBy: string | undefined): RequestItem => ({
    type: 'reasoning',
    summary: [],
    text: 'Hm',
    ...(sealed === undefined ? {} : { sealed }),
    ...(sealedBy === undefined ? {} : { sealedBy }),
  })
  const first = (item: RequestItem) => {
    const [, turn] = turns([say('user', 'A'), item, say('assistant', 'B')])
    return Array.isArray(turn?.content) ? turn.content[0] : undefined
  }

  test('are sent to the target that sealed them', () => {
    expect(first(thought('sig', target.targetName))).toEqual({
      type: 'thinking',
      thinking: 'Hm',
      signature: 'sig',
    })
    expect(first(thought('redacted:data', target.targetName))).toEqual({
      type: 'redacted_thinking',
      data: 'data',
    })
  })

  test('is sent to no other upstream', () => {
    for (const item of [
      thought('sig', 'another/m'),
      thought('sig', undefined),
      thought(undefined, target.targetName),
    ]) {
      expect(first(item)).toEqual(text('B'))
    }
  })

  test('alone form no turn', () => {
    expect(
      turns([say('user', 'A'), thought('sig', target.targetName), say('user', 'B')]),
    ).toHaveLength(1)
  })
})

describe('content', () => {
  const encode = (part: ContentPart, quirks = {}) => {
    const [turn] = turns([{ type: 'message', role: 'user', parts: [part] }], quirks)
    return Array.isArray(turn?.content) ? turn.content[0] : undefined
  }
  const file = (given: Partial<Extract<ContentPart, { type: 'file' }>>): ContentPart => ({
    type: 'file',
    data: null,
    url: null,
    filename: null,
    ...given,
  })

  test('images are sent as data or as a URL', () => {
    const image = (url: string) => encode({ type: 'image', url, detail: 'high' })
    expect(image('data:image/webp;base64,AAAA')).toEqual({
      type: 'image',
      source: { type: 'base64', media_type: 'image/webp', data: 'AAAA' },
    })
    expect(image('https://example.com/a.png')).toEqual({
      type: 'image',
      source: { type: 'url', url: 'https://example.com/a.png' },
    })
    expect(image('data:image/svg+xml,%3Csvg%2F%3E')).toMatchObject({
      source: { media_type: 'image/svg+xml', data: btoa('<svg/>') },
    })
  })

  test('files are sent as documents to upstreams that accept them', () => {
    const files = { files: true }
    const pdf = file({ data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf' })
    expect(encode(pdf, files)).toEqual({
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' },
      title: 'a.pdf',
    })
    expect(encode(file({ data: 'JVBE' }), files)).toMatchObject({
      source: { media_type: 'application/pdf', data: 'JVBE' },
    })
    expect(encode(file({ url: 'https://example.com/a.pdf' }), files)).toEqual({
      type: 'document',
      source: { type: 'url', url: 'https://example.com/a.pdf' },
    })
    expect(encode(file({ data: `data:text/csv;base64,${btoa('a,b')}` }), files)).toEqual({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'a,b' },
    })
    expect(() => encode(file({ filename: 'a.pdf' }), files)).toThrow('the file a.pdf')
  })

  test('without file support, text files become text and others are rejected by name', () => {
    const csv = file({ data: `data:text/csv;base64,${btoa('a,b')}`, filename: 'a.csv' })
    expect(encode(csv)).toEqual(text('a.csv:\na,b'))
    const refused = expect(() => encode(file({ data: 'JVBE', filename: 'a.pdf' })))
    refused.toThrow('the file a.pdf')
    refused.toThrow(expect.objectContaining({ kind: 'invalid_request' }))
  })

  test('only a user message may contain images', () => {
    const parts: ContentPart[] = [{ type: 'image', url: 'https://example.com/a.png', detail: null }]
    expect(() => turns([{ type: 'message', role: 'assistant', parts }])).toThrow('Only a user')
  })
})
