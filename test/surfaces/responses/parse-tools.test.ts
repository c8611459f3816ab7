import { describe, expect, test } from 'bun:test'
import { expectInvalid, parse, refusalOf } from './parsing.ts'

const look = { type: 'function', name: 'look' }
const patch = { type: 'custom', name: 'patch' }
const webSearch = { type: 'web_search', external_web_access: true }
const agents = {
  type: 'namespace',
  name: 'agents',
  description: 'Other agents',
  tools: [{ type: 'function', name: 'spawn', parameters: {} }, patch, webSearch],
}

describe('tools', () => {
  test('of a function distinguish absent fields', () => {
    const full = {
      type: 'function',
      name: 'find',
      description: 'Finds it.',
      parameters: { type: 'object', properties: { what: {} } },
      strict: false,
    }
    const { request, echo } = parse({ tools: [full, { ...look, defer_loading: true }] })
    expect(request.tools).toEqual([
      {
        type: 'function',
        name: 'find',
        description: 'Finds it.',
        parameters: full.parameters,
        strict: false,
      },
      { type: 'function', name: 'look', description: null, parameters: null, strict: null },
    ])
    expect(echo.tools).toEqual([
      full,
      { ...look, description: null, parameters: null, strict: null, defer_loading: true },
    ])
  })

  test('of free text can have a grammar', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' }
    const tools = [patch, { ...patch, name: 'edit', description: 'Edits.', format }]
    const { request, echo } = parse({ tools })
    expect(request.tools).toEqual([
      { type: 'custom', name: 'patch', description: null, grammar: null },
      {
        type: 'custom',
        name: 'edit',
        description: 'Edits.',
        grammar: { syntax: 'lark', definition: 'start: "a"' },
      },
    ])
    expect(echo.tools).toEqual(tools)
    const plain = parse({ tools: [{ ...patch, format: { type: 'text' } }] })
    expect(plain.request.tools).toEqual([
      { type: 'custom', name: 'patch', description: null, grammar: null },
    ])
  })

  test('of a namespace are flattened and keep their namespace', () => {
    const { request, echo, needs } = parse({ tools: [patch, agents] })
    expect(request.tools).toEqual([
      { type: 'custom', name: 'patch', description: null, grammar: null },
      {
        type: 'function',
        name: 'spawn',
        namespace: 'agents',
        namespaceDescription: 'Other agents',
        description: null,
        parameters: {},
        strict: null,
      },
      {
        type: 'custom',
        name: 'patch',
        namespace: 'agents',
        namespaceDescription: 'Other agents',
        description: null,
        grammar: null,
      },
    ])
    expect(echo.tools).toEqual([patch, agents])
    expect(needs.tools).toMatchObject([
      { type: 'web_search', path: 'tools[1].tools[2]', namespace: 'agents' },
    ])
  })

  test('of other types are left to upstreams of this protocol, as sent', () => {
    const tools = [webSearch, { type: 'acme:teleport' }, look]
    const include = ['web_search_call.action.sources', 'reasoning.encrypted_content']
    const { request, echo, needs } = parse({ tools, include, max_tool_calls: 3 })
    expect(request.tools.map((tool) => tool.name)).toEqual(['look'])
    expect(echo.tools).toHaveLength(3)
    expect(request.native).toMatchObject({
      tools: [{ value: webSearch }, { value: { type: 'acme:teleport' } }],
      include: ['web_search_call.action.sources'],
      toolCallsMax: 3,
    })
    expect(needs.tools.map(({ path }) => path)).toEqual(['tools[0]', 'tools[1]'])
  })

  test('of an MCP server are echoed without their credentials', () => {
    const mcp = { type: 'mcp', server_label: 'docs', server_url: 'https://example.com/mcp' }
    const secret = { authorization: 'Bearer hidden', headers: { 'x-key': 'hidden' } }
    expect(parse({ tools: [{ ...mcp, ...secret }] }).echo.tools).toEqual([mcp])
  })
})

describe('tool_choice', () => {
  const choose = (tool_choice: unknown, tools: unknown[] = [look, patch, agents, webSearch]) =>
    parse({ tools, tool_choice })

  test.each(['none', 'auto', 'required'])('%s is accepted', (mode) => {
    expect(choose(mode).request.toolChoice).toHaveProperty('type', mode)
    expect(choose(mode).echo.tool_choice).toBe(mode)
  })

  test('can force a function or a custom tool', () => {
    const forced = choose({ type: 'function', name: 'look' })
    expect(forced.request.toolChoice).toEqual({ type: 'tool', name: 'look', form: 'function' })
    expect(forced.echo.tool_choice).toEqual({ type: 'function', name: 'look' })
    expect(choose({ type: 'custom', name: 'patch' }).request.toolChoice).toEqual({
      type: 'tool',
      name: 'patch',
      form: 'custom',
    })
  })

  test('finds a tool in a namespace, with and without its name', () => {
    const spawn = { type: 'tool', name: 'spawn', namespace: 'agents', form: 'function' } as const
    expect(choose({ type: 'function', name: 'spawn' }).request.toolChoice).toEqual(spawn)
    expect(
      choose({ type: 'function', name: 'spawn', namespace: 'agents' }).request.toolChoice,
    ).toEqual(spawn)
    expect(
      choose({ type: 'custom', name: 'patch', namespace: 'agents' }).request.toolChoice,
    ).toMatchObject({ name: 'patch', namespace: 'agents' })
  })

  test('can allow some of the tools', () => {
    const tools = [{ type: 'function', name: 'look' }, { type: 'web_search' }, patch]
    expect(choose({ type: 'allowed_tools', mode: 'required', tools }).request.toolChoice).toEqual({
      type: 'allowed',
      mode: 'required',
      tools: [{ name: 'look' }, { name: 'patch' }],
      native: [{ type: 'web_search' }],
    })
    expect(choose({ type: 'allowed_tools', tools: [look] }).request.toolChoice).toEqual({
      type: 'allowed',
      mode: 'auto',
      tools: [{ name: 'look' }],
    })
  })

  const onlySearch = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'web_search' }] }
  test.each<[choice: unknown, model: object]>([
    [{ type: 'web_search' }, { type: 'native', value: { type: 'web_search' } }],
    ['required', { type: 'required' }],
    [onlySearch, { type: 'allowed', tools: [], native: [{ type: 'web_search' }] }],
  ])('%j that only a native tool can meet is refused without it', (choice, model) => {
    const { request, needs } = choose(choice, [webSearch])
    expect<unknown>(request.toolChoice).toMatchObject(model)
    expect(needs.refusals).toHaveLength(1)
  })
})

describe('tools that are refused', () => {
  const look = { type: 'function', name: 'look' }
  const patch = { type: 'custom', name: 'patch' }
  const nameRule = 'must be 1 to 64 letters, digits, underscores or dashes'
  const rows: [tools: unknown, param: string, predicate: string][] = [
    [{}, 'tools', 'must be an array of objects'],
    [[null], 'tools[0]', 'must be an object'],
    [[{ name: 'look' }], 'tools[0].type', 'is required'],
    [[{ type: 7 }], 'tools[0].type', 'must be a string'],
    [[{ type: 'function' }], 'tools[0].name', 'is required'],
    [[{ ...look, name: 'look up' }], 'tools[0].name', nameRule],
    [[{ ...look, name: 'l'.repeat(65) }], 'tools[0].name', nameRule],
    [[{ ...look, parameters: [] }], 'tools[0].parameters', 'must be an object'],
    [[{ ...look, strict: 'yes' }], 'tools[0].strict', 'must be a boolean'],
    [
      [{ type: 'function', function: { name: 'look' } }],
      'tools[0].name',
      'is required next to type, not inside function',
    ],
    [[look, patch, { ...patch, name: 'look' }], 'tools[2].name', '"look" is used twice'],
    [[{ ...patch, format: 'text' }], 'tools[0].format', 'must be an object'],
    [[{ ...patch, format: { type: 'ebnf' } }], 'tools[0].format.type', 'must be text or grammar'],
    [
      [{ ...patch, format: { type: 'grammar', syntax: 'ebnf', definition: 'x' } }],
      'tools[0].format.syntax',
      'must be one of lark, regex',
    ],
    [
      [{ ...patch, format: { type: 'grammar', syntax: 'lark' } }],
      'tools[0].format.definition',
      'is required',
    ],
    [[{ type: 'namespace', name: 'n' }], 'tools[0].tools', 'is required'],
    [
      [{ type: 'namespace', name: 'n', tools: [look, look] }],
      'tools[0].tools[1].name',
      '"look" is used twice',
    ],
    [Array(11).fill({ type: 'web_search' }), 'tools', 'must not have more than 10 tools'],
    [
      [
        {
          type: 'namespace',
          name: 'n',
          tools: Array.from({ length: 11 }, (_, n) => ({ ...look, name: `f${n}` })),
        },
      ],
      'tools',
      'must not have more than 10 tools',
    ],
  ]
  for (const [tools, param, predicate] of rows) {
    test(`${param} ${predicate}`, () => {
      expectInvalid(refusalOf({ tools }), param, `${param} ${predicate}.`)
    })
  }
})

describe('a tool_choice that is refused', () => {
  const tools = [{ type: 'function', name: 'look' }, { type: 'web_search' }]
  const forced = { type: 'function', name: 'fly' }
  const notGiven = 'tool_choice names the tool "fly", which is not in tools.'
  const nothing = 'tool_choice requires a call, but the request has no callable tool.'
  const rows: [fields: object, message: string][] = [
    [
      { tool_choice: 'any' },
      'tool_choice must be none, auto, required or an object that names a tool.',
    ],
    [
      { tool_choice: true },
      'tool_choice must be none, auto, required or an object that names a tool.',
    ],
    [{ tool_choice: forced }, notGiven],
    [{ tool_choice: forced, tools }, notGiven],
    [
      { tool_choice: { type: 'custom', name: 'look' }, tools },
      'tool_choice names the tool "look", which is not in tools.',
    ],
    [
      { tool_choice: { type: 'function', name: 'look', namespace: 'eyes' }, tools },
      'tool_choice names the tool "look", which is not in tools.',
    ],
    [
      { tool_choice: { type: 'code_interpreter' }, tools },
      'tool_choice names the tool "code_interpreter", which is not in tools.',
    ],
    [{ tool_choice: 'required' }, nothing],
    [{ tool_choice: { type: 'allowed_tools', tools: [forced] }, tools }, notGiven],
    [
      { tool_choice: { type: 'allowed_tools', tools: [{ type: 'file_search' }] }, tools },
      'tool_choice names the tool "file_search", which is not in tools.',
    ],
  ]
  test.each(rows)('%j', (fields, message) => {
    expectInvalid(refusalOf(fields), 'tool_choice', message)
  })

  test.each([
    [{ type: 'function' }, 'tool_choice.name', 'is required'],
    [{ name: 'look' }, 'tool_choice.type', 'is required'],
    [{ type: 'allowed_tools' }, 'tool_choice.tools', 'is required'],
    [{ type: 'allowed_tools', tools: [7] }, 'tool_choice.tools[0]', 'must be an object'],
    [
      { type: 'allowed_tools', mode: 'none', tools: [] },
      'tool_choice.mode',
      'must be one of auto, required',
    ],
  ])('%j', (tool_choice, param, predicate) => {
    expectInvalid(refusalOf({ tool_choice, tools }), param, `${param} ${predicate}.`)
  })
})
