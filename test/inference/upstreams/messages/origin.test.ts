import { describe, expect, test } from 'bun:test'
import type { InlineFile, RequestOrigin } from '#inference/request.ts'
import { encodeOrigin } from '#inference/upstreams/messages/origin.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { defaultQuirks } from '#test/support/generation.ts'
import { target } from './requests.ts'

/** Fake seals: their content as JSON after a prefix. */
const seal = (payload: string | null, maker: string | null = target.targetName) =>
  `ours:${JSON.stringify({ payload, maker })}`

const openSeal: RequestOrigin['openSeal'] = (signature) => {
  if (signature === 'ours:broken') throw new AppError('invalid_encrypted_content', 'Broken.')
  return signature.startsWith('ours:') ? JSON.parse(signature.slice(5)) : null
}

function encode(body: JsonObject, quirks = {}, files?: Map<string, InlineFile>): JsonObject {
  const inlined = files === undefined ? {} : { files }
  const origin = { protocol: 'messages', body, headers: {}, openSeal, ...inlined } as const
  const all = { ...defaultQuirks, ...quirks }
  return JSON.parse(JSON.stringify(encodeOrigin(origin, { ...target, quirks: all })))
}

const text = (said: string) => ({ type: 'text', text: said })
const user = (...content: unknown[]) => ({ role: 'user', content })
const assistant = (...content: unknown[]) => ({ role: 'assistant', content })
const thinking = (signature: string) => ({ type: 'thinking', thinking: 'Hm', signature })
const used = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }
const seen = { type: 'tool_result', tool_use_id: 'toolu_1' }
const messagesOf = (...messages: unknown[]) => encode({ messages })['messages']

test('a body is forwarded unchanged except for the model and `stream`', () => {
  const body = {
    model: 'vendor-model-x',
    max_tokens: 10,
    system: [{ ...text('Be kind.'), cache_control: { type: 'ephemeral', ttl: '1h' } }],
    messages: [user(text('')), { role: 'system', content: 'x' }, assistant({ type: 'tomorrow' })],
    tools: [{ type: 'web_search_20260318', name: 'web_search' }],
    context_management: { edits: [] },
    field_of_tomorrow: { deep: [1] },
    stream: false,
  }
  const sent = encode(body)
  expect(sent).toEqual({ ...body, model: 'm' })
  expect(Object.keys(sent)).toEqual(Object.keys(body))
})

test("invalid messages are left to the upstream's validation", () => {
  expect(encode({ messages: 'x' })).toEqual({ messages: 'x', model: 'm' })
  expect(messagesOf(1, { role: 'user' }, user(1, null))).toEqual([
    1,
    { role: 'user' },
    user(1, null),
  ])
})

describe('thinking', () => {
  test('sealed by Sluice for this upstream are unsealed', () => {
    const redacted = { type: 'redacted_thinking', data: seal('redacted:data') }
    expect(messagesOf(assistant(thinking(seal('sig')), redacted, text('A')))).toEqual([
      assistant(thinking('sig'), { type: 'redacted_thinking', data: 'data' }, text('A')),
    ])
  })

  test.each([
    ['for another upstream', seal('sig', 'another/m')],
    ['without anything for an upstream', seal(null, null)],
    ['with a key that is gone', 'ours:broken'],
    ['as another kind of block', seal('redacted:data')],
  ])('that we sealed %s are left out', (_, signature) => {
    expect(messagesOf(assistant(thinking(signature), text('A')))).toEqual([assistant(text('A'))])
  })

  test('signed by others are forwarded unchanged', () => {
    const messages = [assistant(thinking('theirs')), assistant(thinking(''))]
    expect(messagesOf(...messages)).toEqual(messages)
  })

  test('a message that contained only them is dropped', () => {
    const lost = assistant(thinking(seal('sig', 'another/m')))
    expect(messagesOf(user(text('A')), lost, user(text('B')))).toEqual([
      user(text('A')),
      user(text('B')),
    ])
  })

  test('thinking is disabled in a turn whose thinking was dropped', () => {
    const lost = assistant(thinking(seal('sig', 'another/m')), used)
    const asked = { type: 'enabled', budget_tokens: 2_000 }
    const sent = (messages: unknown[], thoughts: object) =>
      encode({ thinking: thoughts, messages })['thinking']
    expect(sent([user(text('A')), lost, user(seen)], asked)).toEqual({ type: 'disabled' })
    expect(sent([user(text('A')), lost, user(seen)], { type: 'adaptive' })).toEqual({
      type: 'adaptive',
    })
    expect(sent([lost, user(seen), assistant(text('B')), user(text('C'))], asked)).toEqual(asked)
    const kept = assistant(thinking(seal('sig')), used)
    expect(sent([user(text('A')), kept, user(seen)], asked)).toEqual(asked)
    expect(sent([assistant(used), user(seen)], asked)).toEqual(asked)
    expect(sent([{ role: 'assistant', content: 'A' }, user(seen)], asked)).toEqual(asked)
    expect(sent([], asked)).toEqual(asked)
  })
})

test('call ids of other protocols are re-encoded consistently in call and result', () => {
  const foreign = { ...used, id: 'functions.look:0' }
  const answered = { ...seen, tool_use_id: 'functions.look:0' }
  const id = 'call64_ZnVuY3Rpb25zLmxvb2s6MA'
  expect(messagesOf(assistant(foreign, used), user(answered, seen))).toEqual([
    assistant({ ...foreign, id }, used),
    user({ ...answered, tool_use_id: id }, seen),
  ])
})

test('billing texts of a client are sent only to its vendor', () => {
  const billing = text('x-anthropic-billing-header: cch=1; v=2')
  const system = [billing, text('Be kind.')]
  expect(encode({ system })['system']).toEqual([text('Be kind.')])
  expect(encode({ system }, { vendorFields: true })['system']).toEqual(system)
  expect(encode({ system: 'Be kind.' })['system']).toBe('Be kind.')
})

describe('stored files', () => {
  const files = new Map<string, InlineFile>([
    ['file_1', { mimeType: 'image/png', base64: 'AA==' }],
    ['file_2', { mimeType: 'text/plain', text: 'Hello' }],
  ])
  const stored = (type: string, file_id: unknown) => ({ type, source: { type: 'file', file_id } })
  const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }
  const plain = {
    type: 'document',
    source: { type: 'text', media_type: 'text/plain', data: 'Hello' },
  }
  const sent = (...content: unknown[]) =>
    encode({ messages: [user(...content)] }, {}, files)['messages']

  test('are replaced by their content, in messages and in results of tools', () => {
    const titled = { ...stored('document', 'file_2'), title: 'A' }
    expect(sent(stored('image', 'file_1'), titled)).toEqual([user(png, { ...plain, title: 'A' })])
    const result = { ...seen, content: [text('See:'), 'x', stored('image', 'file_1')] }
    expect(sent(result)).toEqual([user({ ...seen, content: [text('See:'), 'x', png] })])
  })

  test.each([
    ['of others', stored('image', 'file_9')],
    ['without an id', stored('image', undefined)],
    ['that are no files', { type: 'image', source: { type: 'url', file_id: 'file_1' } }],
    ['without a source', { type: 'image', source: 'file_1' }],
    ['in blocks of another type', stored('container_upload', 'file_1')],
    ['in a result that is a text', { ...seen, content: 'file_1' }],
  ])('%s stay as they are', (_, block) => {
    expect(sent(block)).toEqual([user(block)])
  })

  test('stay as they are where none is to be replaced', () => {
    const blocks = [stored('image', 'file_1'), { ...seen, content: [stored('image', 'file_1')] }]
    expect(messagesOf(user(...blocks))).toEqual([user(...blocks)])
  })
})

test('results of searches are sent only to the upstream that encrypted them', () => {
  const found = (encrypted_content: unknown) => ({ type: 'web_search_result', encrypted_content })
  const result = (content: unknown) => ({ type: 'web_search_tool_result', content })
  const mixed = result([found('theirs'), found(seal('sig')), found(''), found(null), 'x'])
  expect(messagesOf(assistant(mixed))).toEqual([assistant(result([found('theirs')]))])
  const own = [result([found('theirs')]), result({ error_code: 'unavailable' })]
  expect(messagesOf(assistant(...own))).toEqual([assistant(...own)])
  expect(messagesOf(assistant(result([found('ours:broken')])))).toEqual([assistant(result([]))])
})

test('calls without a valid id stay as they are', () => {
  const blocks = [
    { ...used, id: '' },
    { ...used, id: 7 },
  ]
  expect(messagesOf(assistant(...blocks))).toEqual([assistant(...blocks)])
})
