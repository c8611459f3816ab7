import { describe, expect, test } from 'bun:test'
import type { Tool, ToolChoice } from '#inference/request.ts'
import { mayCall } from '#inference/tools.ts'
import { blocksOf, decode, decodeWhole } from './decoding.ts'
import {
  argumentsDelta,
  call,
  completed,
  created,
  itemAdded,
  itemDone,
  message,
  messageWith,
  textDelta,
} from './payloads.ts'
import { body } from './requests.ts'

const plain = { type: 'function', description: null, parameters: null, strict: null } as const
const inFiles: Tool = { ...plain, name: 'find', namespace: 'files' }
const inPeople: Tool = { ...plain, name: 'find', namespace: 'people' }
const tools = [inFiles, inPeople]

describe('the request body', () => {
  test('allowed tools are named with their namespaces', () => {
    const toolChoice: ToolChoice = { type: 'allowed', mode: 'auto', tools: [inPeople] }
    expect(body({ tools, toolChoice })).toMatchObject({
      tools: [{ name: 'files' }, { name: 'people' }],
      tool_choice: {
        type: 'allowed_tools',
        mode: 'auto',
        tools: [{ type: 'function', name: 'find', namespace: 'people' }],
      },
    })
  })

  test('a forced tool is named with its namespace', () => {
    const name = { name: 'find', namespace: 'files' }
    const toolChoice: ToolChoice = { type: 'tool', ...name, form: 'function' }
    expect(body({ tools, toolChoice })).toMatchObject({
      tool_choice: { type: 'function', ...name },
    })
  })

  test('a namespace is sent with its description, or its name as one', () => {
    const described: Tool = { ...inFiles, namespaceDescription: 'Works on files.' }
    expect(body({ tools: [described, inPeople] })).toMatchObject({
      tools: [
        { type: 'namespace', name: 'files', description: 'Works on files.' },
        { type: 'namespace', name: 'people', description: 'people' },
      ],
    })
  })
})

describe('a call that is not allowed', () => {
  const choose = (toolChoice: ToolChoice) => ({
    mayCall: (tool: { name: string; namespace?: string }) => mayCall(toolChoice, tool),
  })
  const onlyPeople = choose({ type: 'allowed', mode: 'auto', tools: [inPeople] })
  const find = { ...call, name: 'find', namespace: 'people' }

  test('fails the generation instead of being emitted', () => {
    for (const wrong of [
      { ...find, namespace: 'files' },
      { ...find, namespace: undefined },
      call,
    ]) {
      const { events, error } = decode(
        [created, itemAdded(wrong), argumentsDelta('{}')],
        onlyPeople,
      )
      expect(error?.kind).toBe('upstream_invalid_answer')
      expect(events).toEqual([{ type: 'generation-start' }])
    }
  })

  test('fails the generation after its content', () => {
    const at = { output_index: 1 }
    const payloads = [
      created,
      itemAdded(message),
      textDelta('Let me look.'),
      itemDone(messageWith('Let me look.')),
    ]
    const { events, error } = decode(
      [...payloads, itemAdded(call, at), argumentsDelta('{}', at)],
      onlyPeople,
    )
    expect(error?.kind).toBe('upstream_invalid_answer')
    expect(events.map(({ type }) => type)).toEqual([
      'generation-start',
      'text-start',
      'text-delta',
      'text-end',
    ])
  })

  test('fails the generation also if items arrive only at the end', () => {
    const output = [{ ...call, arguments: '{}' }]
    const whole = { object: 'response', id: 'resp_1', status: 'completed', output }
    expect(decodeWhole(whole, onlyPeople).error?.kind).toBe('upstream_invalid_answer')
    expect(decode([created, completed(output)], onlyPeople).error?.kind).toBe(
      'upstream_invalid_answer',
    )
  })

  test('includes every call with tool_choice none', () => {
    const custom = { ...call, type: 'custom_tool_call', input: '' }
    for (const item of [call, custom]) {
      const { error } = decode([created, itemAdded(item)], choose({ type: 'none' }))
      expect(error?.message).toBe('The upstream called a tool that it was not allowed to call.')
    }
  })

  test('excludes allowed tools, and all tools without a restriction', () => {
    const payloads = (item: object) => [
      created,
      itemAdded(item),
      argumentsDelta('{}'),
      itemDone({ ...item, arguments: '{}' }),
      completed(),
    ]
    expect(blocksOf(decode(payloads(find), onlyPeople))).toEqual([
      { call: 'find', namespace: 'people', id: 'call_1', input: '{}' },
    ])
    for (const type of ['auto', 'required'] as const) {
      expect(decode(payloads(call), choose({ type })).error).toBeNull()
    }
  })
})
