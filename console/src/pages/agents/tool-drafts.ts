import type { Agent } from '../../api/generated/types.ts'
import { faultOf, parseFormat, parseTools } from '../playground/settings.ts'
import type { JsonObject } from '../playground/surface.ts'

type Tool = NonNullable<Agent['tools']>[number]

/** A tool as its form has it; `parameters` and `allowed` are texts as typed. */
export type ToolDraft =
  | {
      readonly type: 'function'
      readonly name: string
      readonly description: string
      readonly parameters: string
      readonly isStrict: boolean
    }
  | {
      readonly type: 'mcp'
      readonly label: string
      readonly allowed: string
      readonly needsApproval: boolean
    }

/** The tools of an agent as they are edited: in a form, or as a JSON text. */
export type ToolsDraft =
  | { readonly view: 'form'; readonly drafts: readonly ToolDraft[] }
  | { readonly view: 'json'; readonly text: string }

const emptySchema = JSON.stringify({ type: 'object', properties: {}, required: [] }, null, 2)

export const newDrafts = {
  function: {
    type: 'function',
    name: '',
    description: '',
    parameters: emptySchema,
    isStrict: false,
  },
  mcp: { type: 'mcp', label: '', allowed: '', needsApproval: true },
} as const satisfies Record<ToolDraft['type'], ToolDraft>

export function draftOf(tool: Tool): ToolDraft {
  if (tool.type === 'mcp') {
    return {
      type: 'mcp',
      label: tool.server_label,
      allowed: (tool.allowed_tools ?? []).join(', '),
      needsApproval: tool.require_approval !== 'never',
    }
  }
  const { name, description, parameters, strict } = tool
  return {
    type: 'function',
    name,
    description: description ?? '',
    parameters: parameters ? JSON.stringify(parameters, null, 2) : '',
    isStrict: strict === true,
  }
}

function toolOf(draft: ToolDraft): JsonObject {
  if (draft.type === 'mcp') {
    const allowed = draft.allowed.split(/[,\n]+/).flatMap((one) => one.trim() || [])
    return {
      type: 'mcp',
      server_label: draft.label.trim(),
      ...(allowed.length === 0 ? {} : { allowed_tools: allowed }),
      require_approval: draft.needsApproval ? 'always' : 'never',
    }
  }
  const description = draft.description.trim()
  const parameters = parseFormat(draft.parameters)
  return {
    type: 'function',
    name: draft.name.trim(),
    ...(description === '' ? {} : { description }),
    ...(parameters === null ? {} : { parameters }),
    ...(draft.isStrict ? { strict: true } : {}),
  }
}

/** The tools in the format of the API. Throws a sentence for text that is no JSON. */
export function toolsOf(draft: ToolsDraft): JsonObject[] {
  return draft.view === 'json' ? parseTools(draft.text) : draft.drafts.map(toolOf)
}

export function textOf(draft: ToolsDraft): string {
  const tools = toolsOf(draft)
  return tools.length === 0 ? '' : JSON.stringify(tools, null, 2)
}

/** The form of a JSON text. Throws a sentence for what the form cannot show. */
export function formOf(text: string): ToolsDraft {
  const drafts = parseTools(text).map((tool) => {
    const { type } = tool
    if (type !== 'function' && type !== 'mcp') throw new Error(`"type": ${JSON.stringify(type)}`)
    const draft = draftOf(tool as unknown as Tool)
    const lost = Object.keys(tool).find((key) => !(key in toolOf(draft)) && tool[key] !== false)
    if (lost !== undefined) throw new Error(`"${lost}"`)
    return draft
  })
  return { view: 'form', drafts }
}

export function schemaFault(parameters: string): string | null {
  return faultOf(parseFormat, parameters)
}

/** The sentence about a field of a tool, or `''` for the tool itself. */
export type ToolFault = { readonly index: number; readonly field: string; readonly message: string }

/** `tools[2].name` or `tools.2.name` of a refusal. */
export function toolFaultOf(param: string | null, message: string): ToolFault | null {
  const found = /^tools(?:\[(\d+)\]|\.(\d+))(?:\.([a-z_]+))?/.exec(param ?? '')
  if (found === null) return null
  return { index: Number(found[1] ?? found[2]), field: found[3] ?? '', message }
}
