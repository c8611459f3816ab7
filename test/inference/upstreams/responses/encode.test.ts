import { describe, expect, test } from 'bun:test'
import type { GenerationRequest } from '#inference/request.ts'
import { always, bare, body, hi } from './requests.ts'

test('a minimal request sends no optional fields', () => {
  expect(body({})).toEqual({ ...always, input: [hi] })
})

test('every request field', () => {
  const request: GenerationRequest = {
    ...bare,
    instructions: 'Be brief.',
    tools: [
      {
        type: 'function',
        name: 'add',
        description: 'Adds.',
        parameters: { type: 'object', properties: { a: { type: 'number' } } },
        strict: true,
      },
    ],
    toolChoice: { type: 'required' },
    parallelToolCalls: false,
    sampling: {
      temperature: 0,
      topP: 0.5,
      topK: null,
      stopSequences: [],
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      maxOutputTokens: 100,
      topLogprobs: 0,
    },
    format: {
      type: 'json-schema',
      name: 'sum',
      description: 'A sum.',
      schema: { type: 'object' },
      strict: true,
    },
    verbosity: 'low',
    reasoning: { effort: 'high', summary: 'auto' },
    promptCacheKey: 'key',
    safetyIdentifier: 'user-1',
    serviceTier: 'flex',
  }
  expect(body(request, { vendorFields: true })).toEqual({
    model: 'm',
    instructions: 'Be brief.',
    input: [hi],
    tools: [
      {
        type: 'function',
        name: 'add',
        description: 'Adds.',
        parameters: { type: 'object', properties: { a: { type: 'number' } } },
        strict: true,
      },
    ],
    tool_choice: 'required',
    parallel_tool_calls: false,
    text: {
      format: {
        type: 'json_schema',
        name: 'sum',
        description: 'A sum.',
        schema: { type: 'object' },
        strict: true,
      },
      verbosity: 'low',
    },
    reasoning: { effort: 'high', summary: 'auto' },
    include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
    temperature: 0,
    top_p: 0.5,
    presence_penalty: 0.1,
    frequency_penalty: 0.2,
    max_output_tokens: 100,
    top_logprobs: 0,
    prompt_cache_key: 'key',
    safety_identifier: 'user-1',
    service_tier: 'flex',
    store: false,
  })
})

test('vendor fields are sent only with the quirk', () => {
  const request = { promptCacheKey: 'key', safetyIdentifier: 'user-1', serviceTier: 'flex' }
  expect(body(request)).toEqual({ ...always, input: [hi] })
})

describe('tools', () => {
  const tool = { type: 'function', description: null, parameters: null, strict: null } as const
  const custom = { type: 'custom', description: null, grammar: null } as const
  const wire = { type: 'function', parameters: { type: 'object', properties: {} } }
  const rest = { ...always, input: [hi], parallel_tool_calls: true }

  test('those of a namespace are grouped at the position of the first', () => {
    const request = body({
      tools: [
        { ...tool, name: 'first' },
        { ...tool, name: 'add', namespace: 'math' },
        { ...custom, name: 'between', description: 'Free text.' },
        { ...custom, name: 'solve', namespace: 'math' },
        { ...tool, name: 'add', namespace: 'time' },
      ],
    })
    expect(request).toEqual({
      ...rest,
      tools: [
        { ...wire, name: 'first' },
        {
          type: 'namespace',
          name: 'math',
          description: 'math',
          tools: [
            { ...wire, name: 'add' },
            { type: 'custom', name: 'solve' },
          ],
        },
        { type: 'custom', name: 'between', description: 'Free text.' },
        {
          type: 'namespace',
          name: 'time',
          description: 'time',
          tools: [{ ...wire, name: 'add' }],
        },
      ],
      tool_choice: 'auto',
    })
  })

  test('a custom tool keeps its grammar', () => {
    const grammar = { syntax: 'lark', definition: 'start: "a"' } as const
    expect(body({ tools: [{ ...custom, name: 'sql', grammar }] })).toEqual({
      ...rest,
      tools: [
        {
          type: 'custom',
          name: 'sql',
          format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
        },
      ],
      tool_choice: 'auto',
    })
  })

  test.each([
    [true, true, { strict: true }],
    [true, false, { strict: false }],
    [false, true, { strict: false }],
    [null, true, {}],
  ])('strict %j, enforced there %j: %j', (strict, strictTools, expected) => {
    const format = {
      type: 'json-schema',
      name: 's',
      description: null,
      schema: {},
      strict,
    } as const
    expect(body({ tools: [{ ...tool, name: 'add', strict }], format }, { strictTools })).toEqual({
      ...rest,
      tools: [{ ...wire, name: 'add', ...expected }],
      tool_choice: 'auto',
      text: { format: { type: 'json_schema', name: 's', schema: {}, ...expected } },
    })
  })

  test.each<[GenerationRequest['toolChoice'], unknown]>([
    [{ type: 'none' }, 'none'],
    [{ type: 'required' }, 'required'],
    [
      { type: 'tool', name: 'add', form: 'function' },
      { type: 'function', name: 'add' },
    ],
    [
      { type: 'tool', name: 'sql', form: 'custom' },
      { type: 'custom', name: 'sql' },
    ],
    [
      { type: 'allowed', mode: 'required', tools: [{ name: 'add' }, { name: 'sql' }] },
      {
        type: 'allowed_tools',
        mode: 'required',
        tools: [
          { type: 'function', name: 'add' },
          { type: 'custom', name: 'sql' },
        ],
      },
    ],
  ])('choice %j', (toolChoice, expected) => {
    const tools = [
      { ...tool, name: 'add' },
      { ...custom, name: 'sql' },
    ]
    expect(body({ tools, toolChoice })).toEqual({
      ...rest,
      tools: [
        { ...wire, name: 'add' },
        { type: 'custom', name: 'sql' },
      ],
      tool_choice: expected,
    })
  })

  test('without tools no tool_choice is sent', () => {
    expect(body({ toolChoice: { type: 'none' }, parallelToolCalls: false })).toEqual({
      ...always,
      input: [hi],
    })
  })
})

describe('text and reasoning', () => {
  test('json_object', () => {
    expect(body({ format: { type: 'json-object' } })).toEqual({
      ...always,
      input: [hi],
      text: { format: { type: 'json_object' } },
    })
  })

  test('sealed reasoning is requested only for reasoning', () => {
    const asked = (reasoning: GenerationRequest['reasoning']) => body({ reasoning })
    const rest = { ...always, input: [hi] }
    const include = ['reasoning.encrypted_content']
    expect(asked({ effort: 'low', summary: null })).toEqual({
      ...rest,
      reasoning: { effort: 'low' },
      include,
    })
    expect(asked({ effort: null, summary: 'auto' })).toEqual({
      ...rest,
      reasoning: { summary: 'auto' },
      include,
    })
    expect(asked({ effort: 'none', summary: null })).toEqual({
      ...rest,
      reasoning: { effort: 'none' },
    })
    expect(
      body({ reasoning: { effort: 'low', summary: 'auto' } }, { reasoningEffort: 'none' }),
    ).toEqual(rest)
  })
})
