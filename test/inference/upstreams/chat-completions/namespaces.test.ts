import { describe, expect, test } from 'bun:test'
import type { Tool, ToolChoice } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import { encodeTools } from '#inference/upstreams/chat-completions/encode.ts'
import { defaultQuirks } from '#test/support/generation.ts'

const plain = { type: 'function', description: null, parameters: null, strict: null } as const
const inFiles: Tool = { ...plain, name: 'find', namespace: 'files' }
const inPeople: Tool = { ...plain, name: 'find', namespace: 'people' }

describe('tools with the same name in two namespaces', () => {
  const toolNames = (toolChoice: ToolChoice) =>
    createToolNames({ tools: [inFiles, inPeople], toolChoice })

  test('are distinct tools, and a call resolves to the right one', () => {
    const { tools, head } = toolNames({ type: 'auto' })
    expect(tools).toHaveLength(2)
    expect(head('people__find')).toEqual({ name: 'find', namespace: 'people', form: 'function' })
  })

  test('are allowed one by one', () => {
    const { tools, head } = toolNames({ type: 'allowed', mode: 'auto', tools: [inPeople] })
    expect(tools).toEqual([inPeople])
    expect(head('people__find')).toMatchObject({ namespace: 'people' })
    expect(() => head('files__find')).toThrow('not allowed to call')
    expect(() => head('find')).toThrow('not allowed to call')
  })
})

describe('the description of a namespace', () => {
  const describeTool = (tool: Tool) => {
    const toolNames = createToolNames({ tools: [tool], toolChoice: { type: 'auto' } })
    const [encoded] = encodeTools(toolNames, defaultQuirks)
    return encoded
  }

  test('is sent with each of its tools', () => {
    const about = { namespaceDescription: 'Works on the files of the user.' }
    expect(describeTool({ ...inFiles, ...about, description: 'Finds one.' })).toMatchObject({
      function: { description: 'Finds one.\n\nfiles: Works on the files of the user.' },
    })
    expect(describeTool({ ...inFiles, ...about })).toMatchObject({
      function: { description: 'files: Works on the files of the user.' },
    })
  })

  test('precedes the grammar of a custom tool', () => {
    const tool: Tool = {
      type: 'custom',
      name: 'patch',
      namespace: 'files',
      namespaceDescription: 'Works on files.',
      description: 'Changes one.',
      grammar: { syntax: 'regex', definition: '^a$' },
    }
    expect(describeTool(tool)).toMatchObject({
      function: {
        name: 'files__patch',
        description:
          'Changes one.\n\nfiles: Works on files.\n\nThe input must match this regex grammar:\n^a$',
      },
    })
  })
})
