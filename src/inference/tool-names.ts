import { createHash } from 'node:crypto'
import { AppError } from '#lib/errors.ts'
import type { ToolCallHead } from './events.ts'
import type { GenerationRequest, Tool, ToolChoice, ToolName } from './request.ts'
import { forbiddenCall, isSameTool, mayCall } from './tool-choice.ts'

/**
 * The tools of a request as an upstream is told them that knows neither namespaces nor freeform
 * tools: both become plain functions under names that lead back.
 */
export type ToolNames = {
  /** What may be called: the tools of the request, less those that `toolChoice` rules out. */
  readonly tools: readonly Tool[]
  wireName(tool: ToolName): string
  /** The call as its caller knows it. Throws when the tool was ruled out. */
  head(wireName: string): Omit<ToolCallHead, 'callId'>
}

/** The longest function name that servers accept. */
const nameCharsMax = 64
const hashChars = 8

export function createToolNames(
  request: Pick<GenerationRequest, 'tools' | 'toolChoice'>,
): ToolNames {
  const wireNames = nameTools(request.tools)
  const wireName = (tool: ToolName) => wireNames.get(keyOf(tool)) ?? flatten(tool)
  // Many servers ignore `tool_choice`, so what must not be called is not offered.
  const tools = request.tools.filter((tool) => mayCall(request.toolChoice, tool))
  checkChoice(request.toolChoice, tools)
  const heads = new Map(tools.map((tool) => [wireName(tool), headOf(tool)]))
  const { type } = request.toolChoice
  const isBound = type === 'none' || type === 'allowed'
  return {
    tools,
    wireName,
    head(name) {
      const head = heads.get(name)
      if (head === undefined && isBound) throw forbiddenCall()
      // A tool that nobody gave: the caller tells the model so.
      return head ?? { name, form: 'function' }
    },
  }
}

/** The schema of what a call of the tool carries; a custom tool's free text is one field of it. */
export function parametersOf(tool: Tool): Readonly<Record<string, unknown>> {
  if (tool.type === 'custom') return inputSchema
  return tool.parameters ?? { type: 'object', properties: {} }
}

/** How the free text of a custom tool travels. */
const inputSchema = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
}

/** What a model is told of a tool, with what its format has no field for; null where it is nothing. */
export function describeTool(tool: Tool): string | null {
  const grammar =
    tool.type === 'custom' && tool.grammar !== null
      ? `The input must match this ${tool.grammar.syntax} grammar:\n${tool.grammar.definition}`
      : null
  const { namespace, namespaceDescription } = tool
  const group = namespaceDescription ? `${namespace}: ${namespaceDescription}` : null
  const description = [tool.description, group, grammar]
    .filter((text) => text !== null)
    .join('\n\n')
  return description === '' ? null : description
}

/** Plain names first, so that a flattened name never takes one that the caller chose. */
function nameTools(tools: readonly Tool[]): Map<string, string> {
  const names = new Map<string, string>()
  const taken = new Set<string>()
  const inOrder = [
    ...tools.filter((tool) => tool.namespace === undefined),
    ...tools.filter((tool) => tool.namespace !== undefined),
  ]
  for (const tool of inOrder) {
    if (names.has(keyOf(tool))) {
      throw new AppError('invalid_request', `Two tools are named ${tool.name}.`, { param: 'tools' })
    }
    const flat = flatten(tool)
    const name = taken.has(flat) ? shorten(flat, keyOf(tool)) : flat
    names.set(keyOf(tool), name)
    taken.add(name)
  }
  return names
}

function flatten(tool: ToolName): string {
  if (tool.namespace === undefined) return tool.name
  const flat = `${tool.namespace}__${tool.name}`.replace(/[^a-zA-Z0-9_-]/g, '_')
  return flat.length <= nameCharsMax ? flat : shorten(flat, keyOf(tool))
}

/** A name of legal length that ends in a hash of what it stands for. */
function shorten(name: string, key: string): string {
  const hash = createHash('sha256').update(key).digest('hex').slice(0, hashChars)
  return `${name.slice(0, nameCharsMax - hashChars - 1)}_${hash}`
}

function keyOf(tool: ToolName): string {
  return `${tool.namespace ?? ''}\n${tool.name}`
}

function headOf(tool: Tool): Omit<ToolCallHead, 'callId'> {
  return {
    name: tool.name,
    form: tool.type,
    ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
  }
}

function checkChoice(choice: ToolChoice, offered: readonly Tool[]): void {
  const isMet =
    choice.type === 'tool'
      ? offered.some((tool) => isSameTool(tool, choice))
      : offered.length > 0 ||
        (choice.type !== 'required' && !(choice.type === 'allowed' && choice.mode === 'required'))
  if (isMet) return
  throw new AppError(
    'invalid_request',
    choice.type === 'tool'
      ? `tool_choice names the tool ${choice.name}, which is not among the tools.`
      : 'tool_choice demands a tool call, but there is no tool that can be called.',
    { param: 'tool_choice' },
  )
}
