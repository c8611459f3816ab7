import { describe, expect, test } from 'bun:test'
import type {
  FunctionTool,
  GenerationRequest,
  OutputFormat,
  RequestItem,
} from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import { encodePrompt } from '#inference/upstreams/llama/encode.ts'
import { makeRequest, userMessage } from '#test/support/generation.ts'

/** The prompt of a request for a local model. */

function encode(given: Partial<GenerationRequest>) {
  const request = makeRequest(given)
  return encodePrompt(request, { toolNames: createToolNames(request), seed: 1 })
}

const says = (role: 'assistant' | 'system' | 'developer', text: string): RequestItem => ({
  type: 'message',
  role,
  parts: [{ type: 'text', text }],
})
const call = (callId: string, args = '{"a":1}'): RequestItem => ({
  type: 'tool-call',
  form: 'function',
  name: 'look',
  callId,
  arguments: args,
})
const result = (callId: string, text: string, isError = false): RequestItem => ({
  type: 'tool-result',
  form: 'function',
  callId,
  isError,
  parts: [{ type: 'text', text }],
})
const look: FunctionTool = {
  type: 'function',
  name: 'look',
  description: 'Looks.',
  strict: null,
  parameters: { type: 'object', properties: { a: { type: 'integer' } } },
}

describe('the history', () => {
  const historyOf = (items: RequestItem[], given: Partial<GenerationRequest> = {}) =>
    encode({ items, ...given }).history

  test('begins with the leading system messages and ends with the continued model turn', () => {
    const items = [says('developer', 'Be brief.'), userMessage('Hello')]
    expect(historyOf(items, { instructions: 'Be kind.' })).toEqual([
      { type: 'system', text: 'Be kind.\n\nBe brief.' },
      { type: 'user', text: 'Hello' },
      { type: 'model', response: [] },
    ])
  })

  test('joins consecutive user messages, and late system messages', () => {
    const items = [userMessage('A'), userMessage('B'), says('system', 'C')]
    expect(historyOf(items)).toEqual([
      { type: 'user', text: 'A\n\nB\n\n[System instruction]\nC' },
      { type: 'model', response: [] },
    ])
  })

  test('keeps calls and their results in their turn', () => {
    const reasoning: RequestItem = { type: 'reasoning', summary: ['Hm.'], text: '' }
    const items: RequestItem[] = [
      userMessage('A'),
      reasoning,
      says('assistant', 'I look.'),
      call('1'),
      call('2', 'no JSON'),
      result('2', 'two'),
      result('1', 'one', true),
      says('assistant', 'Done.'),
      userMessage('B'),
      call('3', ''),
      result('3', 'three'),
    ]
    const made = { type: 'functionCall', name: 'look' }
    expect<unknown>(historyOf(items)).toEqual([
      { type: 'user', text: 'A' },
      {
        type: 'model',
        response: [
          { type: 'segment', segmentType: 'thought', text: 'Hm.', ended: true },
          'I look.',
          { ...made, params: { a: 1 }, result: '[The tool failed]\none' },
          { ...made, params: { input: 'no JSON' }, result: 'two' },
          'Done.',
        ],
      },
      { type: 'user', text: 'B' },
      // No turn follows: the model continues this one.
      { type: 'model', response: [{ ...made, params: {}, result: 'three' }] },
    ])
  })

  test('leaves out what has no text, and what only others can read', () => {
    const sealed: RequestItem = { type: 'reasoning', summary: [], text: 'Hm.', sealedBy: 'u/m' }
    const items: RequestItem[] = [
      userMessage('A'),
      sealed,
      { type: 'reasoning', summary: [], text: '' },
      { type: 'native', value: { type: 'web_search_call' } },
      says('assistant', ''),
      userMessage('B'),
    ]
    expect(historyOf(items)).toEqual([
      { type: 'user', text: 'A' },
      { type: 'model', response: [] },
      { type: 'user', text: 'B' },
      { type: 'model', response: [] },
    ])
  })

  test('has a turn that continues, also behind a user text or a call without a result', () => {
    expect(historyOf([userMessage('A')], { prefilled: true })).toEqual([
      { type: 'user', text: 'A' },
      { type: 'model', response: [] },
    ])
    expect(historyOf([userMessage('A'), call('1')]).slice(1)).toMatchObject([
      { type: 'model', response: [{ name: 'look', result: 'aborted' }] },
    ])
  })

  test('joins the parts of a text by lines', () => {
    const parts = [
      { type: 'text', text: 'A' },
      { type: 'refusal', text: 'B' },
    ] as const
    const [first] = historyOf([{ type: 'message', role: 'user', parts }])
    expect(first).toEqual({ type: 'user', text: 'A\nB' })
  })

  test('continues a prefill, and otherwise starts a new turn', () => {
    const items = [userMessage('A'), says('assistant', 'B')]
    expect(historyOf(items, { prefilled: true }).at(-1)).toEqual({ type: 'model', response: ['B'] })
    expect(historyOf(items).slice(-2)).toEqual([
      { type: 'model', response: ['B'] },
      { type: 'model', response: [] },
    ])
  })

  test('rejects a result without its call', () => {
    const attempt = () => historyOf([userMessage('A'), result('x', 'y')])
    expect(attempt).toThrow('no such call')
  })

  test('rejects images anywhere in the input', () => {
    const picture = { type: 'image', url: 'data:image/png;base64,AA==', detail: null } as const
    for (const items of [
      [{ type: 'message', role: 'user', parts: [picture] }],
      [userMessage('A'), call('1'), { ...result('1', ''), parts: [picture] }],
    ] as RequestItem[][]) {
      expect(() => historyOf(items)).toThrow(
        expect.objectContaining({ kind: 'invalid_request', param: 'input' }),
      )
    }
  })
})

describe('tools and output formats', () => {
  const clock: FunctionTool = { ...look, name: 'clock', description: null, parameters: null }
  const schema = { type: 'object', properties: { n: { type: 'integer' } } }
  const format: OutputFormat = {
    type: 'json-schema',
    name: 'n',
    description: 'A number.',
    schema,
    strict: null,
  }

  test('tools are functions by their names', () => {
    expect(encode({ tools: [look, clock] })).toMatchObject({
      functions: { look: { description: 'Looks.', params: look.parameters }, clock: {} },
      mustCall: false,
    })
    expect(encode({ tools: [clock] }).functions).toEqual({ clock: {} })
  })

  test('only a forced tool is sent', () => {
    const toolChoice = { type: 'tool', form: 'function', name: 'clock' } as const
    const prompt = encode({ tools: [look, clock], toolChoice, parallelToolCalls: false })
    expect(prompt).toMatchObject({ functions: { clock: {} }, mustCall: true, callsMax: 1 })
    expect(Object.keys(prompt.functions ?? {})).toEqual(['clock'])
    expect(encode({ tools: [look], toolChoice: { type: 'none' } }).functions).toBeNull()
  })

  test('an output format is described and enforced', () => {
    const prompt = encode({ format })
    expect(prompt.format).toEqual({ type: 'json-schema', schema })
    expect(prompt.history[0]).toMatchObject({ type: 'system' })
    expect(JSON.stringify(prompt.history[0])).toContain('A number.')
  })

  test('any object is asked for without a schema, and text not at all', () => {
    const prompt = encode({ format: { type: 'json-object' } })
    expect(prompt).toMatchObject({ format: { type: 'json-object' } })
    expect(prompt.history[0]).toEqual({
      type: 'system',
      text: 'Answer with one JSON object and nothing else.',
    })
    expect(encode({}).history[0]?.type).toBe('user')
    const plain = encode({ format: { ...format, description: null } }).history[0]
    expect(plain).toEqual({
      type: 'system',
      text: `Answer with JSON and nothing else, according to this JSON Schema: ${JSON.stringify(schema)}`,
    })
  })

  test('parameters are an object, and at most 64 calls are made at once', () => {
    const untyped = { ...look, parameters: { properties: {} } }
    expect(encode({ tools: [untyped] })).toMatchObject({
      functions: { look: { params: { type: 'object', properties: {} } } },
      callsMax: 64,
    })
  })

  test('with tools an output format is only described', () => {
    const prompt = encode({ format, tools: [look] })
    expect(prompt.format).toEqual({ type: 'text' })
    expect(JSON.stringify(prompt.history[0])).toContain('JSON Schema')
  })
})

test('omitted parameters use the defaults', () => {
  expect(encode({}).sampling).toEqual({ temperature: 0.8, seed: 1 })
  const { sampling } = makeRequest()
  const given = { temperature: 0, topP: 0.5, topK: 3, presencePenalty: 1, frequencyPenalty: -1 }
  const reasoning = { effort: 'none', summary: null }
  expect(
    encode({ sampling: { ...sampling, ...given, maxOutputTokens: 9 }, reasoning }).sampling,
  ).toEqual({ ...given, seed: 1, maxTokens: 9, thinkingTokens: 0 })
})
