import { describe, expect, test } from 'bun:test'
import type {
  CustomTool,
  FunctionTool,
  GenerationRequest,
  RequestItem,
} from '#inference/request.ts'
import {
  createToolNames,
  describeTool,
  indexResults,
  markFailure,
  mayCall,
  missingResult,
  parametersOf,
  refuseOrphans,
  requiresCall,
} from '#inference/tools.ts'
import { encodeItem } from '#inference/upstreams/responses/encode-item.ts'
import { defaultQuirks } from '#test/support/generation.ts'

const text = (words: string) => ({ type: 'text' as const, text: words })
const image = { type: 'image' as const, url: 'https://example.com/a.png', detail: null }

test('a successful tool result is unchanged', () => {
  const parts = [text('red'), image]
  expect(markFailure({ parts })).toBe(parts)
  expect(markFailure({ parts, isError: false })).toBe(parts)
})

test('a failed tool result starts with a marker', () => {
  const failed = (...parts: (typeof image | ReturnType<typeof text>)[]) =>
    markFailure({ parts, isError: true })
  expect(failed(text('No such city.'), image)).toEqual([
    text('[The tool failed]\nNo such city.'),
    image,
  ])
  expect(failed(image)).toEqual([text('[The tool failed]'), image])
  expect(failed()).toEqual([text('[The tool failed]')])
})

test('a Responses upstream receives the marker in the output, which stays one text', () => {
  const item: RequestItem = {
    type: 'tool-result',
    callId: 'a',
    form: 'function',
    parts: [text('No such city.')],
    isError: true,
  }
  expect(encodeItem(item, { quirks: defaultQuirks, targetName: 'x/m' })).toEqual([
    {
      type: 'function_call_output',
      call_id: 'a',
      output: '[The tool failed]\nNo such city.',
    },
  ])
})

const look: FunctionTool = {
  type: 'function',
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { a: {} } },
  strict: null,
}
const shell: CustomTool = { type: 'custom', name: 'shell', description: null, grammar: null }
const grammar = { syntax: 'lark', definition: 'start: "a"' } as const

test('a tool is described with its namespace and its grammar', () => {
  expect(describeTool(look)).toBe('Looks.')
  expect(describeTool(shell)).toBeNull()
  expect(describeTool({ ...look, namespace: 'files', namespaceDescription: 'Of files.' })).toBe(
    'Looks.\n\nfiles: Of files.',
  )
  expect(describeTool({ ...shell, grammar })).toBe(
    'The input must match this lark grammar:\nstart: "a"',
  )
})

test('a tool without parameters takes an object, a custom tool one text', () => {
  expect(parametersOf(look)).toEqual({ type: 'object', properties: { a: {} } })
  expect(parametersOf({ ...look, parameters: null })).toEqual({ type: 'object', properties: {} })
  expect(parametersOf(shell)).toEqual({
    type: 'object',
    properties: { input: { type: 'string' } },
    required: ['input'],
  })
})

describe('the names of tools', () => {
  const namesOf = (
    tools: GenerationRequest['tools'],
    toolChoice: GenerationRequest['toolChoice'] = { type: 'auto' },
    native?: GenerationRequest['native'],
  ) => createToolNames({ tools, toolChoice, ...(native === undefined ? {} : { native }) })

  test('are those of the client, with their namespace in front', () => {
    const inFiles = { ...look, namespace: 'my files' }
    const names = namesOf([look, inFiles, shell])
    expect([look, inFiles, shell].map(names.wireName)).toEqual(['look', 'my_files__look', 'shell'])
    expect(['look', 'my_files__look', 'shell', 'other'].map(names.head)).toEqual([
      { name: 'look', form: 'function' },
      { name: 'look', form: 'function', namespace: 'my files' },
      { name: 'shell', form: 'custom' },
      { name: 'other', form: 'function' },
    ])
  })

  test('differ, also where a plain name equals one with its namespace', () => {
    const inFiles = { ...look, namespace: 'files' }
    const plain = { ...look, name: 'files__look' }
    const names = namesOf([inFiles, plain])
    expect(names.wireName(plain)).toBe('files__look')
    expect(names.wireName(inFiles)).toMatch(/^files__look_[0-9a-f]{8}$/)
    expect(() => namesOf([look, shell, look])).toThrow(
      expect.objectContaining({ message: 'Two tools are named look.', param: 'tools' }),
    )
  })

  test('have at most 64 characters', () => {
    const of = (chars: number) => ({ ...look, namespace: 'n', name: 'x'.repeat(chars - 3) })
    const names = namesOf([of(64), of(65)])
    expect(names.wireName(of(64))).toBe(`n__${'x'.repeat(61)}`)
    expect(names.wireName(of(65))).toMatch(/^n__x{52}_[0-9a-f]{8}$/)
    expect(names.wireName(of(66))).toHaveLength(64)
  })

  test.each([
    [{ type: 'none' }, []],
    [{ type: 'allowed', mode: 'auto', tools: [{ name: 'shell' }] }, [shell]],
  ] as const)('with the choice %j are those of the tools that it allows', (choice, tools) => {
    const names = namesOf([look, shell], choice)
    expect(names.tools).toEqual(tools)
    expect(() => names.head('look')).toThrow('it was not allowed to call')
    expect(() => namesOf([], choice).head('look')).toThrow('it was not allowed to call')
  })

  const required = { type: 'required' } as const
  const none = 'tool_choice requires a tool call, but there is no tool that can be called.'

  test.each<[GenerationRequest['toolChoice'], string]>([
    [required, none],
    [{ type: 'native', value: {} }, none],
    [{ type: 'allowed', mode: 'required', tools: [] }, none],
    [
      { type: 'tool', form: 'function', name: 'find' },
      'tool_choice names the tool find, which is not among the tools.',
    ],
  ])('are refused for the choice %j without a tool', (choice, message) => {
    const refusal = expect.objectContaining({
      kind: 'invalid_request',
      message,
      param: 'tool_choice',
    })
    expect(() => namesOf([], choice)).toThrow(refusal)
    if (choice.type === 'tool') expect(() => namesOf([look], choice)).toThrow(refusal)
  })

  test('may be empty where a native tool can be called, or none has to be', () => {
    const native = { tools: [], include: [], toolCallsMax: null }
    expect(namesOf([], required, native).tools).toEqual([])
    expect(namesOf([], { type: 'allowed', mode: 'auto', tools: [] }).tools).toEqual([])
    expect(namesOf([look], required).tools).toEqual([look])
    expect(namesOf([], { type: 'auto' }).head('look')).toEqual({ name: 'look', form: 'function' })
  })
})

test.each<[GenerationRequest['toolChoice'], boolean, boolean]>([
  [{ type: 'auto' }, true, false],
  [{ type: 'none' }, false, false],
  [{ type: 'required' }, true, true],
  [{ type: 'tool', form: 'function', name: 'look' }, true, true],
  [{ type: 'native', value: {} }, true, true],
  [{ type: 'allowed', mode: 'auto', tools: [{ name: 'look' }] }, true, false],
  [{ type: 'allowed', mode: 'required', tools: [{ name: 'find' }] }, false, true],
  [{ type: 'allowed', mode: 'auto', tools: [{ name: 'look', namespace: 'x' }] }, false, false],
])('the choice %j: may look be called? %p, must a tool? %p', (choice, may, must) => {
  expect([mayCall(choice, look), requiresCall(choice)]).toEqual([may, must])
})

test('results belong to the calls with their ids, and none may be left over', () => {
  const result = (callId: string, words: string) =>
    ({ type: 'tool-result', callId, form: 'function', parts: [text(words)] }) as const
  const items: RequestItem[] = [
    result('a', '1'),
    { type: 'message', role: 'user', parts: [] },
    result('b', '2'),
    result('a', '3'),
  ]
  const results = indexResults(items)
  expect(Object.fromEntries(results)).toEqual({
    a: [result('a', '1'), result('a', '3')],
    b: [result('b', '2')],
  })
  expect(indexResults(items.slice(1, 2)).size).toBe(0)
  expect(() => refuseOrphans(new Map([['a', []]]))).not.toThrow()
  expect(() => refuseOrphans(results)).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      message: 'The input holds an output for the tool call a, but no such call.',
      param: 'input',
    }),
  )
})

test('a call without a result was aborted, unless nobody waits for it', () => {
  const call = { type: 'tool-call', callId: 'a', name: 'look', form: 'function' } as const
  expect(missingResult({ ...call, arguments: '' })).toBe('aborted')
  expect(missingResult({ ...call, arguments: '', async: true })).toBe(
    'The tool is still running. Its result follows later; go on without it.',
  )
})
