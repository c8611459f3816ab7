import { describe, expect, test } from 'bun:test'
import type {
  FunctionTool,
  GenerationRequest,
  OutputFormat,
  RequestItem,
} from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import { encodePrompt } from '#inference/upstreams/llama/encode.ts'
import { toAppError } from '#lib/errors.ts'
import { makeRequest, userMessage } from '#test/support/generation.ts'

/** How a request becomes the prompt of a model on this machine. */

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

  test('begins with all system texts that lead the input, and ends where the model goes on', () => {
    const items = [says('developer', 'Be brief.'), userMessage('Hello')]
    expect(historyOf(items, { instructions: 'Be kind.' })).toEqual([
      { type: 'system', text: 'Be kind.\n\nBe brief.' },
      { type: 'user', text: 'Hello' },
      { type: 'model', response: [] },
    ])
  })

  test('joins what the user says in a row, and what the system says in between', () => {
    const items = [userMessage('A'), userMessage('B'), says('system', 'C')]
    expect(historyOf(items)).toEqual([
      { type: 'user', text: 'A\n\nB\n\n[System instruction]\nC' },
      { type: 'model', response: [] },
    ])
  })

  test('keeps calls and their results in the turn in which they were made', () => {
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
      // There is no turn behind it: the model goes on in this one.
      { type: 'model', response: [{ ...made, params: {}, result: 'three' }] },
    ])
  })

  test('goes on from the beginning of an answer, and otherwise behind what was said', () => {
    const items = [userMessage('A'), says('assistant', 'B')]
    expect(historyOf(items, { prefilled: true }).at(-1)).toEqual({ type: 'model', response: ['B'] })
    expect(historyOf(items).slice(-2)).toEqual([
      { type: 'model', response: ['B'] },
      { type: 'model', response: [] },
    ])
  })

  test('takes no result without its call', () => {
    const attempt = () => historyOf([userMessage('A'), result('x', 'y')])
    expect(attempt).toThrow('no such call')
  })

  test('takes no picture, wherever it is', () => {
    const picture = { type: 'image', url: 'data:image/png;base64,AA==', detail: null } as const
    for (const items of [
      [{ type: 'message', role: 'user', parts: [picture] }],
      [userMessage('A'), call('1'), { ...result('1', ''), parts: [picture] }],
    ] as RequestItem[][]) {
      let thrown: unknown
      try {
        historyOf(items)
      } catch (error) {
        thrown = error
      }
      expect(toAppError(thrown).kind).toBe('invalid_request')
    }
  })
})

describe('tools and forms', () => {
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

  test('only the tool that must be called is there', () => {
    const toolChoice = { type: 'tool', form: 'function', name: 'clock' } as const
    const prompt = encode({ tools: [look, clock], toolChoice, parallelToolCalls: false })
    expect(prompt).toMatchObject({ functions: { clock: {} }, mustCall: true, callsMax: 1 })
    expect(Object.keys(prompt.functions ?? {})).toEqual(['clock'])
    expect(encode({ tools: [look], toolChoice: { type: 'none' } }).functions).toBeNull()
  })

  test('a form is told and held to', () => {
    const prompt = encode({ format })
    expect(prompt.format).toEqual({ type: 'json-schema', schema })
    expect(prompt.history[0]).toMatchObject({ type: 'system' })
    expect(JSON.stringify(prompt.history[0])).toContain('A number.')
  })

  test('next to tools a form is only told', () => {
    const prompt = encode({ format, tools: [look] })
    expect(prompt.format).toEqual({ type: 'text' })
    expect(JSON.stringify(prompt.history[0])).toContain('JSON Schema')
  })
})

test('what the caller does not say is left to the defaults', () => {
  expect(encode({}).sampling).toEqual({ temperature: 0.8, seed: 1 })
  const { sampling } = makeRequest()
  const told = { temperature: 0, topP: 0.5, topK: 3, presencePenalty: 1, frequencyPenalty: -1 }
  const reasoning = { effort: 'none', summary: null }
  expect(
    encode({ sampling: { ...sampling, ...told, maxOutputTokens: 9 }, reasoning }).sampling,
  ).toEqual({ ...told, seed: 1, maxTokens: 9, thinkingTokens: 0 })
})
