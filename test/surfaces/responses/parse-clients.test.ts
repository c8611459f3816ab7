import { describe, expect, test } from 'bun:test'
import { parse } from './parsing.ts'

/** Bodies of current clients, reduced to one of each kind of object. */

describe('Codex CLI', () => {
  const lark =
    'start: begin_patch hunk+ end_patch\nbegin_patch: "*** Begin Patch" LF\n%import common.LF'
  const shell = {
    type: 'function',
    name: 'shell',
    description: 'Runs a shell command and returns its output.',
    strict: false,
    parameters: {
      type: 'object',
      properties: { command: { type: 'array', items: { type: 'string' } } },
      required: ['command'],
      additionalProperties: false,
    },
  }
  const applyPatch = {
    type: 'custom',
    name: 'apply_patch',
    description: 'Edits files.',
    format: { type: 'grammar', syntax: 'lark', definition: lark },
  }
  const agents = {
    type: 'namespace',
    name: 'multi_agent_v1',
    description: 'Tools for agents.',
    tools: [{ ...shell, name: 'spawn_agent' }],
  }
  const texts = (role: string, type: string, ...lines: string[]) => ({
    type: 'message',
    role,
    content: lines.map((text) => ({ type, text })),
  })
  const history = [
    texts('developer', 'input_text', 'You are a coding agent.'),
    texts('developer', 'input_text', '<permissions>', '<collaboration_mode>'),
    texts('user', 'input_text', '<environment_context>'),
    texts('user', 'input_text', 'Fix the test.'),
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Reading first.' }],
      content: null,
      encrypted_content: 'c2VhbGVk',
    },
    { id: 'msg_1', phase: 'commentary', ...texts('assistant', 'output_text', 'I will look.') },
    { type: 'function_call', id: 'fc_1', name: 'shell', arguments: '{}', call_id: 'call_1' },
    {
      type: 'function_call',
      id: 'fc_2',
      name: 'spawn_agent',
      namespace: 'multi_agent_v1',
      arguments: '{}',
      call_id: 'call_2',
    },
    { type: 'function_call_output', id: 'fco_1', call_id: 'call_1', output: 'ok' },
    { type: 'function_call_output', id: 'fco_2', call_id: 'call_2', output: 'aborted' },
    {
      type: 'custom_tool_call',
      id: 'ctc_1',
      status: 'completed',
      call_id: 'call_3',
      name: 'apply_patch',
      input: '*** Begin Patch\n*** End Patch\n',
    },
    { type: 'custom_tool_call_output', call_id: 'call_3', output: 'Success.' },
    { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'bun' } },
  ]
  const parsed = parse({
    stream: true,
    store: false,
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { summary: 'auto' },
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: '0199a213-81c0-7800-8aa1-bbab2a035a53',
    client_metadata: { 'x-codex-installation-id': '7b2f' },
    input: history,
    tools: [shell, agents, { type: 'web_search', external_web_access: true }, applyPatch],
  })

  test('streams, stores nothing and requests encrypted reasoning', () => {
    expect(parsed).toMatchObject({ stream: true, includeSealed: true, echo: { store: false } })
    expect(parsed.request.promptCacheKey).toBe('0199a213-81c0-7800-8aa1-bbab2a035a53')
    expect(parsed.request.instructions).toBeNull()
  })

  test('replays its complete history', () => {
    const kinds = parsed.request.items.map((item) =>
      item.type === 'message' ? item.role : item.type,
    )
    expect(kinds).toEqual([
      'developer',
      'developer',
      'user',
      'user',
      'reasoning',
      'assistant',
      'tool-call',
      'tool-call',
      'tool-result',
      'tool-result',
      'tool-call',
      'tool-result',
      'native',
    ])
    expect(parsed.ignoredItems).toEqual([])
  })

  test('has its namespace flattened, its grammar kept and its web search left to upstreams', () => {
    expect(parsed.request.tools).toMatchObject([
      { type: 'function', name: 'shell', strict: false },
      { type: 'function', name: 'spawn_agent', namespace: 'multi_agent_v1' },
      { type: 'custom', name: 'apply_patch', grammar: { syntax: 'lark', definition: lark } },
    ])
    expect(parsed.needs.tools).toMatchObject([{ type: 'web_search', path: 'tools[2]' }])
    expect(parsed.echo.tools).toHaveLength(4)
  })
})

describe('the AI SDK', () => {
  test('sends the second step of a tool loop completely', () => {
    const { request, stream } = parse({
      input: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'input_text', text: 'Weather in Brno?' }] },
        {
          type: 'function_call',
          call_id: 'call_1',
          name: 'weather',
          arguments: '{"city":"Brno"}',
          id: 'fc_1',
        },
        { type: 'function_call_output', call_id: 'call_1', output: '{"celsius":21}' },
      ],
      temperature: 0,
      max_output_tokens: 500,
      tools: [
        {
          type: 'function',
          name: 'weather',
          description: 'Weather of a city',
          parameters: {
            $schema: 'http://json-schema.org/draft-07/schema#',
            type: 'object',
            properties: { city: { type: 'string' } },
            required: ['city'],
            additionalProperties: false,
          },
        },
      ],
      tool_choice: 'auto',
      stream: true,
    })
    expect(stream).toBe(true)
    expect(request.items).toMatchObject([
      { role: 'system' },
      { role: 'user' },
      { type: 'tool-call', callId: 'call_1', arguments: '{"city":"Brno"}' },
      { type: 'tool-result', callId: 'call_1', parts: [{ text: '{"celsius":21}' }] },
    ])
  })

  test('requests an object by the schema of its zod types', () => {
    const { request } = parse({
      text: {
        format: {
          type: 'json_schema',
          strict: true,
          name: 'response',
          schema: {
            $schema: 'http://json-schema.org/draft-07/schema#',
            type: 'object',
            properties: {
              steps: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
            },
            required: ['steps'],
            additionalProperties: false,
          },
        },
      },
    })
    expect(request.format).toMatchObject({ type: 'json-schema', name: 'response', strict: true })
  })
})

describe('the Agents SDK', () => {
  test('sends empty lists and nulls for unused fields', () => {
    const { request, needs } = parse({
      instructions: 'You hand over.',
      input: [
        { role: 'user', content: 'Hello' },
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Hi.', annotations: [] }],
        },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Again' }] },
      ],
      include: [],
      tools: [
        {
          type: 'function',
          name: 'transfer_to_other',
          description: '',
          parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
          strict: true,
          defer_loading: false,
        },
      ],
      previous_response_id: null,
      conversation: null,
      temperature: null,
      top_p: null,
      truncation: null,
      max_output_tokens: null,
      tool_choice: null,
      parallel_tool_calls: null,
      stream: false,
      text: { format: { type: 'text' } },
      store: null,
      prompt_cache_retention: null,
      metadata: {},
    })
    expect(request).toMatchObject({
      instructions: 'You hand over.',
      toolChoice: { type: 'auto' },
      parallelToolCalls: true,
      format: { type: 'text' },
    })
    expect(request.items).toHaveLength(3)
    expect(request.tools).toHaveLength(1)
    expect(needs.tools).toEqual([])
  })
})
