import { describe, expect, test } from 'bun:test'
import { expectInvalid, parse, refusalOf } from './parsing.ts'

/** Allowed tools of the same name; other choices are in `parse-tools.test.ts`. */

const find = { type: 'function', name: 'find' }
const tools = [
  { type: 'namespace', name: 'files', tools: [find, { type: 'custom', name: 'patch' }] },
  { type: 'namespace', name: 'people', tools: [find] },
  { type: 'function', name: 'look' },
]

const allow = (entries: object[], given: object[] = tools) => {
  const tool_choice = { type: 'allowed_tools', mode: 'auto', tools: entries }
  return parse({ tools: given, tool_choice }).request.toolChoice
}

describe('allowed tools', () => {
  test('of the same name are distinguished by namespaces', () => {
    expect(allow([{ ...find, namespace: 'people' }])).toMatchObject({
      tools: [{ name: 'find', namespace: 'people' }],
    })
  })

  test('without a namespace are the top-level tool, or those of every namespace', () => {
    expect(allow([find], [...tools, find])).toMatchObject({ tools: [{ name: 'find' }] })
    expect(allow([find])).toMatchObject({
      tools: [
        { name: 'find', namespace: 'files' },
        { name: 'find', namespace: 'people' },
      ],
    })
  })

  test('can be all of a namespace', () => {
    expect(allow([{ type: 'namespace', name: 'files' }])).toMatchObject({
      tools: [
        { name: 'find', namespace: 'files' },
        { name: 'patch', namespace: 'files' },
      ],
    })
  })

  test.each([
    [{ ...find, namespace: 'folders' }, 'find'],
    [{ type: 'custom', name: 'find' }, 'find'],
    [{ type: 'namespace', name: 'folders' }, 'folders'],
  ])('must be in tools: %j', (entry, name) => {
    const refusal = refusalOf({ tools, tool_choice: { type: 'allowed_tools', tools: [entry] } })
    const message = `tool_choice names the tool "${name}", which is not in tools.`
    expectInvalid(refusal, 'tool_choice', message)
  })

  test('are echoed as sent, with the mode that applied', () => {
    const tool_choice = { type: 'allowed_tools', tools: [{ ...find, namespace: 'files' }] }
    const echoOf = (choice: object) => parse({ tools, tool_choice: choice }).echo.tool_choice
    expect(echoOf(tool_choice)).toEqual({ ...tool_choice, mode: 'auto' })
    const required = { ...tool_choice, mode: 'required' }
    expect(echoOf(required)).toEqual(required)
  })
})
