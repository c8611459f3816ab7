import { describe, expect, test } from 'bun:test'
import type { FunctionTool, GenerationRequest, Tool, ToolChoice } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeChatRequest } from '#inference/upstreams/chat-completions/encode.ts'
import { defaultQuirks, makeRequest } from '#test/support/generation.ts'

/** The body after JSON serialisation, without undefined fields. */
function encode(given: Partial<GenerationRequest> = {}, quirks: Partial<UpstreamQuirks> = {}) {
  const request = makeRequest(given)
  const body = encodeChatRequest(request, {
    model: 'upstream-model',
    quirks: { ...defaultQuirks, ...quirks },
    targetName: 'upstream/m',
    toolNames: createToolNames(request),
  })
  return JSON.parse(JSON.stringify(body))
}

const plain = {
  model: 'upstream-model',
  messages: [{ role: 'user', content: 'Hello' }],
}

const parameters = {
  type: 'object',
  properties: { x: { type: 'integer' } },
  required: ['x'],
  additionalProperties: false,
}

const look: FunctionTool = {
  type: 'function',
  name: 'look',
  description: 'Looks.',
  parameters,
  strict: null,
}
const find: FunctionTool = { ...look, name: 'find' }

const wireTool = (name: string, more: object = {}) => ({
  type: 'function',
  function: { name, description: 'Looks.', parameters, ...more },
})

test('a minimal request sends only the input and `stream`', () => {
  expect(encode()).toEqual(plain)
})

test('every request field is sent under its name in chat completions', () => {
  const request: Partial<GenerationRequest> = {
    instructions: 'Be kind.',
    tools: [look],
    toolChoice: { type: 'required' },
    parallelToolCalls: false,
    sampling: {
      temperature: 0,
      topP: 0.5,
      topK: null,
      stopSequences: [],
      presencePenalty: -1,
      frequencyPenalty: 1,
      maxOutputTokens: 100,
      topLogprobs: 3,
    },
    format: {
      type: 'json-schema',
      name: 'reply',
      description: 'A reply.',
      schema: parameters,
      strict: true,
    },
    verbosity: 'low',
    reasoning: { effort: 'high', summary: 'auto' },
    promptCacheKey: 'key',
    safetyIdentifier: 'someone',
    serviceTier: 'flex',
  }
  const body = {
    ...plain,
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hello' },
    ],
    tools: [wireTool('look')],
    tool_choice: 'required',
    parallel_tool_calls: false,
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'reply', description: 'A reply.', schema: parameters },
    },
    max_tokens: 100,
    temperature: 0,
    top_p: 0.5,
    presence_penalty: -1,
    frequency_penalty: 1,
    logprobs: true,
    top_logprobs: 3,
    reasoning_effort: 'high',
  }
  expect(encode(request)).toEqual(body)
  const { max_tokens, ...rest } = body
  const quirks = {
    maxTokensField: 'max_completion_tokens',
    strictTools: true,
    vendorFields: true,
    streamUsage: false,
  } as const
  expect(encode(request, quirks)).toEqual({
    ...rest,
    max_completion_tokens: max_tokens,
    tools: [wireTool('look', { strict: true })],
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'reply', description: 'A reply.', schema: parameters, strict: true },
    },
    prompt_cache_key: 'key',
    safety_identifier: 'someone',
    service_tier: 'flex',
    verbosity: 'low',
  })
})

test('json_object is sent without a schema', () => {
  expect(encode({ format: { type: 'json-object' } })).toEqual({
    ...plain,
    response_format: { type: 'json_object' },
  })
})

describe('reasoning effort', () => {
  test.each([
    ['none', 'none'],
    ['minimal', 'low'],
    ['low', 'low'],
    ['medium', 'medium'],
    ['high', 'high'],
    ['xhigh', 'high'],
    ['max', 'high'],
    ['unheard-of', undefined],
  ])('%s goes to the nearest level that servers take', (effort, sent) => {
    expect(encode({ reasoning: { effort, summary: null } }).reasoning_effort).toBe(sent)
  })

  test('is a switch for some servers and not sent to others', () => {
    const ask = (effort: string, reasoningEffort: UpstreamQuirks['reasoningEffort']) =>
      encode({ reasoning: { effort, summary: null } }, { reasoningEffort })
    expect(ask('none', 'enable_thinking')).toEqual({
      ...plain,
      chat_template_kwargs: { enable_thinking: false },
    })
    expect(ask('low', 'enable_thinking')).toEqual({
      ...plain,
      chat_template_kwargs: { enable_thinking: true },
    })
    expect(ask('low', 'none')).toEqual(plain)
  })
})

describe('tools', () => {
  test('a tool without description and parameters gets an empty object schema', () => {
    const tool: Tool = { ...look, description: null, parameters: null }
    expect(encode({ tools: [tool] })).toEqual({
      ...plain,
      tools: [
        {
          type: 'function',
          function: { name: 'look', parameters: { type: 'object', properties: {} } },
        },
      ],
    })
  })

  test('strict is sent where it is enforced, by default for schemas that qualify', () => {
    const open = { ...parameters, additionalProperties: true }
    const strictOf = (tool: Tool) =>
      encode({ tools: [tool] }, { strictTools: true }).tools[0].function.strict
    expect(strictOf(look)).toBe(true)
    expect(strictOf({ ...look, parameters: open })).toBe(false)
    expect(strictOf({ ...look, parameters: { ...parameters, required: [] } })).toBe(false)
    expect(strictOf({ ...look, parameters: open, strict: true })).toBe(true)
    expect(strictOf({ ...look, strict: false })).toBe(false)
  })

  test('a custom tool is a function with one text, its grammar in the description', () => {
    const tool: Tool = {
      type: 'custom',
      name: 'shell',
      description: 'Runs.',
      grammar: { syntax: 'lark', definition: 'start: "ls"' },
    }
    expect(encode({ tools: [tool] }).tools).toEqual([
      {
        type: 'function',
        function: {
          name: 'shell',
          description: 'Runs.\n\nThe input must match this lark grammar:\nstart: "ls"',
          parameters: {
            type: 'object',
            properties: { input: { type: 'string' } },
            required: ['input'],
          },
        },
      },
    ])
  })
})

describe('names in namespaces', () => {
  const inSpace = (namespace: string, name: string): Tool => ({ ...look, namespace, name })
  const namesOf = (tools: Tool[]): string[] =>
    encode({ tools }).tools.map((tool: { function: { name: string } }) => tool.function.name)

  test('are flattened, and invalid characters replaced', () => {
    expect(namesOf([inSpace('files', 'read'), inSpace('my.files', 'read')])).toEqual([
      'files__read',
      'my_files__read',
    ])
  })

  test('are at most 64 characters long and stay unique when truncated', () => {
    const long = 'n'.repeat(70)
    const names = namesOf([inSpace(long, 'a'), inSpace(long, 'b')])
    expect(names.map((name) => name.length)).toEqual([64, 64])
    expect(names[0]).not.toBe(names[1])
    expect(names).toEqual(namesOf([inSpace(long, 'a'), inSpace(long, 'b')]))
  })

  test('never take the name of another tool', () => {
    const tools = [inSpace('a', 'b'), { ...look, name: 'a__b' }, inSpace('a_', '_b')]
    const names = namesOf(tools)
    expect(names[1]).toBe('a__b')
    expect(new Set(names).size).toBe(3)
  })

  test('resolve to the tool', () => {
    const tools = [inSpace('a', 'b'), { ...look, name: 'a__b' }]
    const toolNames = createToolNames(makeRequest({ tools }))
    expect(tools.map((tool) => toolNames.head(toolNames.wireName(tool)))).toEqual([
      { name: 'b', namespace: 'a', form: 'function' },
      { name: 'a__b', form: 'function' },
    ])
  })

  test('that occur twice are rejected', () => {
    expect(() => namesOf([inSpace('a', 'b'), inSpace('a', 'b')])).toThrow('Two tools are named b.')
  })
})

describe('the choice of a tool', () => {
  const choose = (toolChoice: ToolChoice, tools: Tool[] = [look, find]) => {
    const { tools: sent, tool_choice } = encode({ tools, toolChoice })
    const names = sent?.map((tool: { function: { name: string } }) => tool.function.name)
    return { names, tool_choice }
  }

  test('auto is the default and not sent', () => {
    expect(choose({ type: 'auto' })).toEqual({ names: ['look', 'find'], tool_choice: undefined })
  })

  test('`none` sends no tools, because many servers ignore the choice', () => {
    expect(encode({ tools: [look], toolChoice: { type: 'none' } })).toEqual(plain)
  })

  test('a single tool is chosen by its name at the upstream', () => {
    const namespaced: Tool = { ...look, namespace: 'files' }
    const choice = { type: 'tool', name: 'look', namespace: 'files', form: 'function' } as const
    expect(choose(choice, [look, namespaced])).toEqual({
      names: ['look', 'files__look'],
      tool_choice: { type: 'function', function: { name: 'files__look' } },
    })
  })

  test('only allowed tools are sent', () => {
    expect(choose({ type: 'allowed', mode: 'auto', tools: [find] })).toEqual({
      names: ['find'],
      tool_choice: undefined,
    })
    expect(choose({ type: 'allowed', mode: 'required', tools: [find] })).toEqual({
      names: ['find'],
      tool_choice: 'required',
    })
  })

  test.each<ToolChoice>([
    { type: 'tool', name: 'other', form: 'function' },
    { type: 'allowed', mode: 'required', tools: [{ name: 'other' }] },
  ])('%j of tools that are not given is refused', (toolChoice) => {
    expect(() => choose(toolChoice)).toThrow('tool_choice')
  })

  test('a required call without tools is rejected', () => {
    expect(() => choose({ type: 'required' }, [])).toThrow('no tool that can be called')
  })
})
