import { createHash } from 'node:crypto'
import { AppError } from '#lib/errors.ts'
import type { ToolCallHead } from './events.ts'
import type {
  ContentPart,
  GenerationRequest,
  RequestItem,
  Tool,
  ToolCallItem,
  ToolChoice,
  ToolName,
} from './request.ts'

/**
 * The tools of a request for upstreams without namespaces and freeform tools: both become functions
 * with reversible names.
 */
export type ToolNames = {
  /** The tools of the request without those that `toolChoice` excludes. */
  readonly tools: readonly Tool[]
  wireName(tool: ToolName): string
  /** The call under its original name. Throws when `toolChoice` excludes the tool. */
  head(wireName: string): Omit<ToolCallHead, 'callId'>
}

/** Servers refuse longer function names. */
const nameCharsMax = 64
const hashChars = 8

export function createToolNames(
  request: Pick<GenerationRequest, 'tools' | 'toolChoice' | 'native'>,
): ToolNames {
  if (request.tools.length === 0) return withoutTools(request)
  const wireNames = nameTools(request.tools)
  const wireName = (tool: ToolName) => wireNames.get(keyOf(tool)) ?? flatten(tool)
  // Many servers ignore `tool_choice`, so excluded tools are not sent.
  const tools = request.tools.filter((tool) => mayCall(request.toolChoice, tool))
  requireSatisfiable(request, tools)
  const heads = new Map(tools.map((tool) => [wireName(tool), headOf(tool)]))
  const unknownHead = isRestricted(request) ? refuseCall : headOfUnknown
  return { tools, wireName, head: (name) => heads.get(name) ?? unknownHead(name) }
}

function withoutTools(request: Pick<GenerationRequest, 'toolChoice' | 'native'>): ToolNames {
  requireSatisfiable(request, [])
  return isRestricted(request) ? restrictedNames : openNames
}

function isRestricted({ toolChoice: { type } }: Pick<GenerationRequest, 'toolChoice'>): boolean {
  return type === 'none' || type === 'allowed'
}

/** The client tells the model that it has no such tool. */
function headOfUnknown(name: string): Omit<ToolCallHead, 'callId'> {
  return { name, form: 'function' }
}

function refuseCall(): never {
  throw forbiddenCall()
}

const openNames: ToolNames = { tools: [], wireName: flatten, head: headOfUnknown }
const restrictedNames: ToolNames = { tools: [], wireName: flatten, head: refuseCall }

/** The JSON Schema of a tool's arguments; the free text of a custom tool is a single field. */
export function parametersOf(tool: Tool): Readonly<Record<string, unknown>> {
  if (tool.type === 'custom') return inputSchema
  return tool.parameters ?? { type: 'object', properties: {} }
}

/** The arguments of a custom tool. */
const inputSchema = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
}

/** A tool's description including grammar and namespace; null if empty. */
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

/** Plain names first, so that a flattened name never replaces one of the client. */
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

/** Shortens a name to the limit, with a hash of its key at the end. */
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

function requireSatisfiable(
  { toolChoice: choice, native }: Pick<GenerationRequest, 'toolChoice' | 'native'>,
  tools: readonly Tool[],
): void {
  const isSatisfiable =
    choice.type === 'tool'
      ? tools.some((tool) => isSameTool(tool, choice))
      : tools.length > 0 || native !== undefined || !requiresCall(choice)
  if (isSatisfiable) return
  throw new AppError(
    'invalid_request',
    choice.type === 'tool'
      ? `tool_choice names the tool ${choice.name}, which is not among the tools.`
      : 'tool_choice requires a tool call, but there is no tool that can be called.',
    { param: 'tool_choice' },
  )
}

/** Whether a tool choice allows calling a tool, which may be unknown. */
export function mayCall(choice: ToolChoice, tool: ToolName): boolean {
  if (choice.type !== 'allowed') return choice.type !== 'none'
  return choice.tools.some((allowed) => isSameTool(allowed, tool))
}

/** Whether a choice requires the model to call a tool. */
export function requiresCall(choice: ToolChoice): boolean {
  if (choice.type === 'allowed') return choice.mode === 'required'
  return choice.type === 'required' || choice.type === 'tool' || choice.type === 'native'
}

export function isSameTool(one: ToolName, other: ToolName): boolean {
  return one.name === other.name && one.namespace === other.namespace
}

export function forbiddenCall(): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream called a tool that it was not allowed to call.',
  )
}

export type ToolResultItem = Extract<RequestItem, { type: 'tool-result' }>

/** The result of a tool call without one in the request: servers refuse calls without results. */
export function missingResult(call: ToolCallItem): string {
  if (call.async === undefined) return 'aborted'
  return 'The tool is still running. Its result follows later; go on without it.'
}

/** Results by call id. Clients may reuse an id in a later turn, so each has a list. */
export function indexResults(items: readonly RequestItem[]): Map<string, ToolResultItem[]> {
  const results = items.filter((item) => item.type === 'tool-result')
  return Map.groupBy(results, ({ callId }) => callId)
}

/** Throws when results remain after every call has taken its own. */
export function refuseOrphans(results: ReadonlyMap<string, ToolResultItem[]>): void {
  for (const [callId, remaining] of results) {
    if (remaining.length === 0) continue
    throw new AppError(
      'invalid_request',
      `The input holds an output for the tool call ${callId}, but no such call.`,
      { param: 'input' },
    )
  }
}

/** For upstreams without a field for failed tools. */
const failureMarker = '[The tool failed]'

/** The parts of a tool result, prefixed with a marker if the tool failed. */
export function markFailure({
  parts,
  isError = false,
}: Pick<ToolResultItem, 'parts' | 'isError'>): readonly ContentPart[] {
  if (!isError) return parts
  const [first, ...others] = parts
  if (first?.type !== 'text') return [{ type: 'text', text: failureMarker }, ...parts]
  return [{ type: 'text', text: `${failureMarker}\n${first.text}` }, ...others]
}
