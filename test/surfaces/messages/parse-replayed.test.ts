import { describe, expect, test } from 'bun:test'
import { createSealerOf } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'
import { testSeals } from '#test/support/sealing.ts'
import {
  assistant,
  called,
  itemsOf,
  messageItem,
  parse,
  refusalOfMessages,
  returned,
  text,
  toolUse,
  user,
} from './parsing.ts'

/** Thinking and server tools of an earlier message. */

const thinking = (words: string, signature?: string) => ({
  type: 'thinking',
  thinking: words,
  ...(signature === undefined ? {} : { signature }),
})
const redacted = (data: string) => ({ type: 'redacted_thinking', data })
const after = (...blocks: unknown[]): unknown =>
  itemsOf(user('?'), assistant(...blocks), user('And?')).slice(1, -1)

describe('thinking', () => {
  const { seal } = testSeals.reasoning
  const maker = 'somewhere/a-model'

  test('signed by this gateway is opened, with the payload of its maker', () => {
    const own = seal({ text: 'Hm.', payload: null, maker: null })
    expect(after(thinking('', own))).toEqual([{ type: 'reasoning', summary: [], text: 'Hm.' }])
    const sealed = seal({ text: '', payload: 'secret', maker })
    expect(after(thinking('In short: hm.', sealed))).toEqual([
      {
        type: 'reasoning',
        summary: ['In short: hm.'],
        text: '',
        sealed: 'secret',
        sealedBy: maker,
      },
    ])
    expect(after(redacted(sealed))).toEqual([
      { type: 'reasoning', summary: [], text: '', sealed: 'secret', sealedBy: maker },
    ])
  })

  test('keeps its position among the other blocks', () => {
    const own = seal({ text: 'Hm.', payload: null, maker: null })
    expect(after(thinking('Hm.', own), text('Well.'), toolUse('a'))).toEqual([
      { type: 'reasoning', summary: [], text: 'Hm.' },
      messageItem('assistant', 'Well.'),
      called('a'),
    ])
  })

  test('without a signature is used as sent', () => {
    expect(after(thinking('Hm.'), thinking('Yes.', ''), thinking(''))).toEqual([
      { type: 'reasoning', summary: [], text: 'Hm.' },
      { type: 'reasoning', summary: [], text: 'Yes.' },
    ])
  })

  test('signed by another service, or altered, is ignored', () => {
    const own = seal({ text: 'Hm.', payload: null, maker: null })
    const other = sealsOf(createSealerOf(['another-secret-for-tests-of-seals-01']), 'owner')
    const foreign = other.reasoning.seal({ text: 'Hm.', payload: null, maker: null })
    const broken = [`${own.slice(0, -4)}AAAA`, foreign, 'EqQBCkgIARABGAIiQL8aSomething', 'x']
    for (const signature of broken) {
      expect(after(thinking('Hm.', signature), redacted(signature))).toEqual([])
    }
  })

  test('is opened for an upstream of the same protocol by its own rules', () => {
    const opened = parse({}).request.origin?.openSeal(seal({ text: 'x', payload: 'p', maker }))
    expect(opened).toMatchObject({ payload: 'p', maker })
    expect(parse({}).request.origin?.openSeal('EqQBCkgIARABGAIiQL8a')).toBeNull()
  })

  test('requires its fields', () => {
    const refusal = (block: object) => refusalOfMessages(assistant(block))
    expect(refusal({ type: 'thinking' })).toBe('messages.0.content.0.thinking: is required')
    expect(refusal({ type: 'redacted_thinking' })).toBe('messages.0.content.0.data: is required')
  })
})

describe('server tools of an earlier response', () => {
  const use = (id: string, name: string, input: object = {}) => ({
    type: 'server_tool_use',
    id,
    name,
    input,
  })
  const result = (type: string, id: string, content?: unknown) => ({
    type: `${type}_tool_result`,
    tool_use_id: id,
    ...(content === undefined ? {} : { content }),
  })

  test('are calls with results within the output', () => {
    const found = {
      type: 'web_search_result',
      title: 'Skies',
      url: 'https://a.example',
      encrypted_content: 'abc',
      page_age: null,
    }
    expect(
      after(
        text('I look.'),
        use('s', 'web_search', { query: 'sky' }),
        result('web_search', 's', [found]),
        text('Red.'),
      ),
    ).toEqual([
      messageItem('assistant', 'I look.'),
      called('s', 'web_search', '{"query":"sky"}'),
      returned(
        's',
        '{"type":"web_search_result","title":"Skies","url":"https://a.example","page_age":null}',
      ),
      messageItem('assistant', 'Red.'),
    ])
  })

  const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0' }
  test.each([
    [
      'web_fetch',
      { type: 'web_fetch_result', content: { type: 'document', source: pdf } },
      'application/pdf"}',
    ],
    [
      'code_execution',
      { type: 'code_execution_result', stdout: '42\n', return_code: 0 },
      '"stdout":"42\\n"',
    ],
    ['bash_code_execution', { error_code: 'unavailable' }, '{"error_code":"unavailable"}'],
    ['text_editor_code_execution', { lines: ['a'] }, '{"lines":["a"]}'],
    ['mcp', [text('One.'), text('Two.')], 'One.\nTwo.'],
    ['mcp', 'As it is.', 'As it is.'],
    ['advisor', undefined, ''],
    ['something_new', 7, ''],
  ])('have the result of %s as text: %j', (kind, content, words) => {
    const [, item] = Object(after(use('s', kind), result(kind, 's', content)))
    expect(item).toMatchObject({ type: 'tool-result', callId: 's' })
    expect(item.parts[0].text).toContain(words)
    expect(item.parts[0].text).not.toContain('JVBERi0')
  })

  test('are dropped without a result, and kept as text without a call', () => {
    expect(after(use('s', 'web_search'), text('Well.'))).toEqual([
      messageItem('assistant', 'Well.'),
    ])
    expect(after(result('mcp', 's', 'Red.'), result('mcp', 't'))).toEqual([
      messageItem('assistant', 'Red.'),
    ])
  })

  test('include MCP servers', () => {
    const call = { type: 'mcp_tool_use', id: 'm', name: 'dig', server_name: 'x', input: {} }
    expect(after(call, { ...result('mcp', 'm', 'Gold.'), is_error: false })).toEqual([
      called('m', 'mcp__x__dig'),
      returned('m', 'Gold.'),
    ])
  })
})

test('a summary of the earlier conversation is text, and vendor blocks are ignored', () => {
  const blocks = [
    { type: 'compaction', content: 'They spoke of skies.' },
    { type: 'compaction', content: null },
    { type: 'fallback', from: 'x' },
    { type: 'mcp_listing', tools: [] },
  ]
  const upload = { type: 'container_upload', file_id: 'f' }
  const messages = [user(text('Hi.'), upload), assistant(...blocks), user('Go on.')]
  const parsed = parse({ messages })
  expect<unknown>(parsed.request.items).toEqual([
    messageItem('user', 'Hi.'),
    messageItem('assistant', 'They spoke of skies.'),
    messageItem('user', 'Go on.'),
  ])
  expect(parsed.ignored).toEqual(['container_upload', 'fallback', 'mcp_listing'])
})
