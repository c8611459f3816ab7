import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { openResponsesExists } from '#test/support/open-responses.ts'
import {
  type ReplayAnswer,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { checkBody } from '#test/support/response-objects.ts'

/** The validation of every object that a test receives. */

const message = {
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'user',
  content: [{ type: 'input_text', text: 'Hello' }],
}
const usage = {
  input_tokens: 1,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 1,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 2,
}
const compaction = {
  id: 'resp_1',
  object: 'response.compaction',
  created_at: 1,
  output: [message, { id: 'cmp_1', type: 'compaction', encrypted_content: 'sealed' }],
  usage,
}
const page = {
  object: 'list',
  data: [message],
  first_id: 'msg_1',
  last_id: 'msg_1',
  has_more: false,
}
const error = { message: 'No.', type: 'not_found_error', param: null, code: 'not_found' }
const foreign = { id: 'mcp_1', type: 'mcp_call', name: 'n' }

const right: [what: string, body: JsonObject][] = [
  ['a compaction', compaction],
  ['a page', page],
  [
    'a page with an item that Open Responses does not know',
    { ...page, data: [message, foreign], last_id: 'mcp_1' },
  ],
  ['an empty page', { object: 'list', data: [], first_id: null, last_id: null, has_more: false }],
  ['a deletion', { id: 'resp_1', object: 'response.deleted', deleted: true }],
  ['a token count', { object: 'response.input_tokens', input_tokens: 1 }],
  ['an error', { error }],
  ['an object of other endpoints', { object: 'model', id: 'm' }],
]

const wrong: [what: string, body: JsonObject][] = [
  ['a page with a wrong last id', { ...page, last_id: 'msg_2' }],
  ['a page with an invalid item', { ...page, data: [message, null] }],
  [
    'a page with an item without an id',
    { ...page, data: [{ ...message, id: undefined }], first_id: undefined, last_id: undefined },
  ],
  ['a page without has_more', { ...page, has_more: null }],
  [
    'a deletion with further fields',
    { id: 'resp_1', object: 'response.deleted', deleted: true, at: 1 },
  ],
  ['an invalid token count', { object: 'response.input_tokens', input_tokens: null }],
  ['an error without a field', { error: { ...error, param: undefined } }],
  ['an error with an unknown field', { error: { ...error, stack: 'at …' } }],
  ['an error without a message', { error: { ...error, message: null } }],
]

const wrongByDocument: [what: string, body: JsonObject][] = [
  ['a compaction without usage', { ...compaction, usage: null }],
  [
    'a compaction with an incomplete item',
    { ...compaction, output: [{ ...message, role: undefined }] },
  ],
  ['a page with an incomplete item', { ...page, data: [{ ...message, status: 'done' }] }],
  ['a response without its fields', { object: 'response', id: 'resp_1' }],
]

describe('the validation of objects', () => {
  test.each(right)('accepts %s', (_, body) => {
    expect(() => checkBody(JSON.parse(JSON.stringify(body)))).not.toThrow()
  })
  test.each(wrong)('rejects %s', (_, body) => {
    expect(() => checkBody(JSON.parse(JSON.stringify(body)))).toThrow()
  })
  test.skipIf(!openResponsesExists).each(wrongByDocument)('rejects %s', (_, body) => {
    expect(() => checkBody(JSON.parse(JSON.stringify(body)))).toThrow()
  })
})

describe('a validated gateway response', () => {
  let server: ReplayUpstream
  beforeAll(async () => {
    server = await startReplayUpstream({})
  })
  afterAll(() => server.stop())

  const read = async (answer: ReplayAnswer, path = '/responses') => {
    server.answer(answer)
    return (await checkedFetch(`${server.baseUrl}${path}`, { method: 'POST', body: '{}' })).text()
  }
  const json = { 'content-type': 'application/json' }

  test('reports an invalid stream', async () => {
    await expect(read({ body: 'data: [DONE]\n\n' })).rejects.toThrow('the stream has an end')
    await expect(read({ body: ': hello\n\n' })).rejects.toThrow('ends with [DONE]')
  })

  const begin = async () => {
    server.answer({ body: ': hello\n\n', ending: 'hang' })
    const answer = await checkedFetch(`${server.baseUrl}/responses`)
    const reader = answer.body?.getReader()
    if (reader === undefined) throw new Error('no body')
    await reader.read()
    return reader
  }

  test('reports a stream that was invalid before it was cut off', async () => {
    const reader = await begin()
    server.cut()
    await expect(reader.read()).rejects.toThrow('not a frame')
  })

  test('reports a stream that was invalid before the client disconnected', async () => {
    const reader = await begin()
    await expect(reader.cancel()).rejects.toThrow('not a frame')
  })

  test('reports a resumed stream that begins at the wrong event', async () => {
    const frame = { type: 'response.in_progress', sequence_number: 3 }
    const body = `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\ndata: [DONE]\n\n`
    const reading = read({ body }, '/responses/resp_1?stream=true&starting_after=3')
    await expect(reading).rejects.toThrow('one counter from 4')
  })

  test('reports an invalid object', async () => {
    const body = JSON.stringify({ error: {} })
    await expect(read({ headers: json, status: 400, body })).rejects.toThrow()
  })

  test('returns everything else unchanged', async () => {
    expect(await read({ headers: json, body: '{"error":"of another server"}' }, '/../x')).toContain(
      'another server',
    )
    expect(await read({ headers: json, body: JSON.stringify({ error }) })).toContain('not_found')
  })
})
