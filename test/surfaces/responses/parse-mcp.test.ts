import { describe, expect, test } from 'bun:test'
import { expectInvalid, parse, refusalOf } from './parsing.ts'

const docs = { type: 'mcp', server_label: 'docs', server_url: 'https://example.com/mcp' }
const tool = (fields: object = {}) => parse({ tools: [{ ...docs, ...fields }] }).hosted.mcp[0]

describe('tools of type mcp', () => {
  test('are parsed, and not sent to the model as tools', () => {
    const { hosted, request, needs } = parse({ tools: [docs] })
    expect(hosted.mcp).toEqual([
      {
        path: 'tools[0]',
        urlPath: 'tools[0].server_url',
        label: 'docs',
        url: 'https://example.com/mcp',
        description: null,
        authorization: null,
        headers: {},
        allowed: null,
        approval: 'always',
      },
    ])
    expect([request.tools, needs.tools]).toEqual([[], []])
  })

  test('restrict tools by a list or by filters, and require approval by rules', () => {
    expect(tool({ allowed_tools: ['a'] })?.allowed).toEqual({ names: ['a'], readOnly: null })
    const filter = { tool_names: ['a'], read_only: true }
    expect(tool({ allowed_tools: filter })?.allowed).toEqual({ names: ['a'], readOnly: true })
    expect(tool({ require_approval: 'never' })?.approval).toBe('never')
    expect(tool({ require_approval: { never: { read_only: true } } })?.approval).toEqual({
      always: null,
      never: { names: null, readOnly: true },
    })
  })

  test('are echoed without anything that may be a credential', () => {
    const secret = {
      authorization: 'hidden',
      headers: { 'x-key': 'hidden' },
      server_url: 'https://user:hidden@example.com/mcp?key=hidden#hidden',
    }
    expect(parse({ tools: [{ ...docs, ...secret }] }).echo.tools).toEqual([docs])
  })

  const faults: readonly [fields: object, param: string, sentence: string][] = [
    [
      { server_label: 'no spaces' },
      'server_label',
      'must be a letter, followed by up to 63 letters, digits, underscores or dashes',
    ],
    [{ headers: 'x' }, 'headers', 'must be an object'],
    [{ headers: { 'x y': 'z' } }, 'headers', 'has an invalid name or value: "x y"'],
    [{ headers: { x: 'a\nb' } }, 'headers', 'has an invalid name or value: "x"'],
    [{ headers: { x: 1 } }, 'headers', 'has an invalid name or value: "x"'],
    [{ authorization: 'a\nb' }, 'authorization', 'must be a valid header value'],
    [{ allowed_tools: [1] }, 'allowed_tools[0]', 'must be the name of a tool'],
    [{ allowed_tools: 'a' }, 'allowed_tools', 'must be an array of names or an object'],
    [
      { require_approval: 'sometimes' },
      'require_approval',
      'must be always, never or an object of filters',
    ],
    [{ require_approval: { never: 1 } }, 'require_approval.never', 'must be an object'],
  ]

  for (const [fields, field, sentence] of faults) {
    test(`are refused: ${JSON.stringify(fields)}`, () => {
      const param = `tools[0].${field}`
      expectInvalid(refusalOf({ tools: [{ ...docs, ...fields }] }), param, `${param} ${sentence}.`)
    })
  }

  test('require unique labels', () => {
    const param = 'tools[1].server_label'
    expectInvalid(refusalOf({ tools: [docs, docs] }), param, `${param} "docs" is used twice.`)
  })
})

describe('tool_choice', () => {
  const choice = (tool_choice: unknown) => {
    const { hosted, request } = parse({ tools: [docs], tool_choice })
    return [request.toolChoice, hosted.mcpChoice]
  }

  test('can force a server, or one of its tools', () => {
    const server = { type: 'mcp', server_label: 'docs' }
    expect(choice(server)).toEqual([
      { type: 'required' },
      { type: 'forced', label: 'docs', name: null },
    ])
    expect(choice({ ...server, name: 'a' })).toMatchObject([{}, { name: 'a' }])
  })

  test('can be required if a server is the only tool', () => {
    expect(choice('required')).toEqual([{ type: 'required' }, { type: 'any' }])
  })

  test('can allow some of its tools, or none', () => {
    const tools = [{ type: 'mcp', server_label: 'docs', name: 'a' }]
    expect(choice({ type: 'allowed_tools', mode: 'required', tools })).toEqual([
      { type: 'allowed', mode: 'required', tools: [] },
      { type: 'only', tools: [{ label: 'docs', name: 'a' }] },
    ])
    expect(choice('none')).toEqual([{ type: 'none' }, { type: 'only', tools: [] }])
  })

  test('cannot name a server that is not in tools', () => {
    const tool_choice = { type: 'mcp', server_label: 'other' }
    const sentence = 'tool_choice names the server "other", which is not in tools.'
    expectInvalid(refusalOf({ tools: [docs], tool_choice }), 'tool_choice', sentence)
  })
})

describe('items of remote servers in an input', () => {
  const call = {
    type: 'mcp_call',
    id: 'mcp_1',
    server_label: 'docs',
    name: 'look',
    arguments: '{}',
  }
  const request = { ...call, type: 'mcp_approval_request', id: 'mcpr_1' }
  const approve = (approved: boolean) => ({
    type: 'mcp_approval_response',
    approval_request_id: 'mcpr_1',
    approve: approved,
  })
  const user = { role: 'user', content: 'Hello' }
  const answer = { role: 'assistant', content: 'Hello you' }
  const read = (...input: object[]) => {
    const { request, hosted } = parse({ input })
    const items = request.items.map((item) => {
      if (item.type === 'tool-call') return `call ${item.callId} ${item.name}`
      if (item.type !== 'tool-result') return item.type
      return `result ${item.callId}: ${item.parts.map((part) => 'text' in part && part.text)}`
    })
    return { items, approved: hosted.mcpHistory.approved.map(({ requestId }) => requestId) }
  }
  const called = (id: string) => `call ${id} mcp__docs__look`

  test('are calls with their results, including every form of failure', () => {
    expect(read({ ...call, output: 'seen' }).items).toEqual([called('mcp_1'), 'result mcp_1: seen'])
    const failed = (error: unknown) => read({ ...call, error }).items[1]
    expect(failed('broke')).toBe('result mcp_1: The call failed: broke')
    expect(failed({ type: 'http_error', code: 1, message: 'broke' })).toBe(
      'result mcp_1: The call failed: broke',
    )
    expect(failed({ content: [{ text: 'broke' }] })).toBe(
      'result mcp_1: The call failed: [{"text":"broke"}]',
    )
    expect(read(call).items[1]).toBe('result mcp_1: The call did not finish.')
  })

  test('an approved call waits for its result', () => {
    expect(read(user, request, approve(true))).toEqual({
      items: ['message', called('mcpr_1')],
      approved: ['mcpr_1'],
    })
  })

  test('a denied or unanswered call has that as its result', () => {
    expect(read(request, approve(false), user)).toEqual({
      items: [called('mcpr_1'), 'result mcpr_1: The user did not approve this call.', 'message'],
      approved: [],
    })
    const reason = { ...approve(false), reason: 'Too dear.' }
    expect(read(request, reason).items[1]).toContain(
      'The user did not approve this call. Too dear.',
    )
    expect(read(request, user)).toEqual({
      items: [called('mcpr_1'), 'result mcpr_1: The call was not approved.', 'message'],
      approved: [],
    })
  })

  test('an approved call that has run is one call, and does not run again', () => {
    const ran = { ...call, approval_request_id: 'mcpr_1', output: 'seen' }
    expect(read(request, approve(true), ran, answer, user)).toEqual({
      items: [called('mcpr_1'), 'result mcpr_1: seen', 'message', 'message'],
      approved: [],
    })
  })

  test('an approval expires with the next model output', () => {
    expect(read(request, approve(true), answer, user)).toEqual({
      items: [called('mcpr_1'), 'result mcpr_1: The call was not approved.', 'message', 'message'],
      approved: [],
    })
  })

  test('a list applies to its server, but a failed one does not', () => {
    const list = {
      type: 'mcp_list_tools',
      server_label: 'docs',
      tools: [{ name: 'look', input_schema: {} }],
    }
    const lists = (item: object) => [
      ...parse({ input: [item, user] }).hosted.mcpHistory.lists.keys(),
    ]
    expect(lists(list)).toEqual(['docs'])
    expect(lists({ ...list, error: 'broke' })).toEqual([])
    expect(lists({ ...list, tools: [] })).toEqual([])
  })

  test('an approval requires its request', () => {
    const param = 'input[0].approval_request_id'
    const sentence = `${param} is "mcpr_1", but no earlier approval request has this id.`
    expectInvalid(refusalOf({ input: [approve(true), user] }), param, sentence)
  })
})
