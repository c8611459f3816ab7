import { describe, expect, test } from 'bun:test'
import {
  assistant,
  type Message,
  parse,
  refusalOf,
  text,
  toolResult,
  toolUse,
  user,
} from './parsing.ts'

const schema = { type: 'object', properties: { city: { type: 'string' } } }
const tool = (name: string, fields: object = {}) => ({ name, input_schema: schema, ...fields })
const namesOf = (fields: object) => parse(fields).request.tools.map(({ name }) => name)

describe('tools', () => {
  test('of the client are functions, strict only on request', () => {
    const tools = [
      tool('look', { description: 'Looks.', strict: true, cache_control: { type: 'ephemeral' } }),
      tool('dig', { type: 'custom', eager_input_streaming: true, input_examples: [] }),
      { name: 'wait', type: null, input_schema: { type: 'object' } },
      { name: 'go', input_schema: {} },
    ]
    const nothing = { type: 'object', properties: {} }
    expect<unknown>(parse({ tools }).request.tools).toEqual([
      {
        type: 'function',
        name: 'look',
        description: 'Looks.',
        parameters: schema,
        strict: true,
      },
      { type: 'function', name: 'dig', description: null, parameters: schema, strict: false },
      { type: 'function', name: 'wait', description: null, parameters: nothing, strict: false },
      { type: 'function', name: 'go', description: null, parameters: nothing, strict: false },
    ])
  })

  test('of the vendor are left to upstreams of this protocol, as sent', () => {
    const search = { type: 'web_search_20260318', name: 'web_search', max_uses: 5 }
    const toolset = { type: 'computer_toolset_20260801', name: 'computer' }
    const { request, needs } = parse({ tools: [search, toolset, tool('look')] })
    expect(request.tools).toMatchObject([{ name: 'look' }])
    expect(request.native?.tools).toMatchObject([{ value: search }, { value: toolset }])
    expect(needs.tools).toMatchObject([
      { type: 'web_search_20260318', path: 'tools.0' },
      { type: 'computer_toolset_20260801', path: 'tools.1' },
    ])
  })

  test.each([
    ['bash_20250124', 'bash', ['command', 'restart']],
    ['text_editor_20250728', 'str_replace_based_edit_tool', ['command', 'path', 'insert_text']],
    ['text_editor_20250124', 'str_replace_editor', ['command', 'path', 'new_str']],
    ['memory_20250818', 'memory', ['command', 'path', 'old_path', 'new_path']],
  ])('%s, which the client runs, is a function with its schema', (type, name, fields) => {
    const { request, needs } = parse({ tools: [{ type, name }] })
    expect(request.tools).toMatchObject([{ type: 'function', name, strict: false }])
    const properties = Object(request.tools[0])['parameters']['properties']
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(fields))
    expect(needs.tools).toEqual([])
  })

  test('of an unknown type with a schema are custom tools', () => {
    expect(namesOf({ tools: [tool('look', { type: 'something_20310101' })] })).toEqual(['look'])
  })

  test.each([
    [['look'], 'tools.0: must be an object'],
    [[{ name: 'look' }], 'tools.0.input_schema: is required'],
    [[{ input_schema: schema }], 'tools.0.name: is required'],
    [[tool('a b')], 'tools.0.name: must be 1 to 128 letters, digits, underscores or dashes'],
    [[tool('look'), tool('look')], 'tools.1.name: "look" is used twice'],
    [
      [tool('look', { input_schema: { type: 'array' } })],
      'tools.0.input_schema.type: must be "object"',
    ],
    [[tool('look', { input_schema: 'object' })], 'tools.0.input_schema: must be an object'],
    [Array(11).fill(tool('look')), 'tools: must not have more than 10 tools'],
  ])('as %j are refused: %s', (tools, message) => {
    expect(refusalOf({ tools })).toBe(message)
  })
})

describe('deferred tools', () => {
  const tools = [
    tool('find'),
    tool('dig', { defer_loading: true }),
    tool('look', { defer_loading: true }),
  ]
  const withMessages = (...messages: Message[]) =>
    namesOf({ tools, messages: [user('Hi.'), ...messages] })
  const reference = { type: 'tool_reference', tool_name: 'look' }

  test('are hidden until the conversation names them', () => {
    expect(withMessages()).toEqual(['find'])
    const found = user(toolResult('a', { content: [reference] }))
    expect(withMessages(assistant(toolUse('a', 'find')), found)).toEqual(['find', 'look'])
    const used = user(toolResult('a', { content: 'x' }))
    expect(withMessages(assistant(toolUse('a', 'dig')), used)).toEqual(['find', 'dig'])
    expect(namesOf({ tools, tool_choice: { type: 'tool', name: 'dig' } })).toEqual(['find', 'dig'])
  })

  test('can be named by a search of the vendor', () => {
    const call = { type: 'server_tool_use', id: 's', name: 'tool_search_tool_bm25', input: {} }
    const content = { type: 'tool_search_tool_search_result', tool_references: [reference] }
    const result = { type: 'tool_search_tool_result', tool_use_id: 's', content }
    expect(withMessages(assistant(call, result, text('There.')), user('Go.'))).toEqual([
      'find',
      'look',
    ])
  })

  test('are all visible if only the vendor can search them', () => {
    const search = { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' }
    expect(namesOf({ tools: [search, ...tools] })).toEqual(['find', 'dig', 'look'])
  })
})

describe('tool_choice', () => {
  const tools = [tool('look'), tool('dig')]
  const choose = (tool_choice: object) => parse({ tools, tool_choice }).request

  test.each([
    [{ type: 'auto' }, { type: 'auto' }],
    [{ type: 'any' }, { type: 'required' }],
    [{ type: 'none' }, { type: 'none' }],
    [
      { type: 'tool', name: 'dig' },
      { type: 'tool', form: 'function', name: 'dig' },
    ],
  ])('%j', (asked, toolChoice) => {
    expect<unknown>(choose(asked)).toMatchObject({ toolChoice, parallelToolCalls: true })
    const single = choose({ ...asked, disable_parallel_tool_use: true })
    expect<unknown>(single).toMatchObject({ toolChoice, parallelToolCalls: false })
  })

  test('can be auto without tools', () => {
    for (const type of ['auto', 'none']) {
      expect<unknown>(parse({ tool_choice: { type } }).request.toolChoice).toEqual({ type })
    }
  })

  const search = { type: 'web_search_20260318', name: 'web_search' }
  test.each([
    [tools, 'auto', 'tool_choice: must be an object'],
    [tools, {}, 'tool_choice.type: is required'],
    [tools, { type: 'some' }, 'tool_choice.type: must be one of auto, any, tool, none'],
    [tools, { type: 'tool' }, 'tool_choice.name: is required'],
    [tools, { type: 'tool', name: 'go' }, 'tool_choice.name: is "go", which is not in tools'],
    [
      [search, ...tools],
      { type: 'tool', name: 'web_search' },
      'tool_choice.name: is "web_search", whose type "web_search_20260318" is not supported',
    ],
    [[], { type: 'any' }, 'tool_choice: requires a call, but the request has no callable tool'],
    [
      [search],
      { type: 'any' },
      'tool_choice: requires a call, but the request has no callable tool; tools of type "web_search_20260318" are not supported',
    ],
  ])('of %j as %j is refused: %s', (given, choice, message) => {
    expect(refusalOf({ tools: given, tool_choice: choice })).toBe(message)
  })
})
