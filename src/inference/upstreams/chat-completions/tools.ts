import type { Tool, ToolChoice } from '#inference/request.ts'
import { describeTool, parametersOf, type ToolNames } from '#inference/tool-names.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { isRecord } from '#lib/json.ts'

/** The tools as the fields of a chat request. */
export function encodeTools(toolNames: ToolNames, quirks: UpstreamQuirks): unknown[] {
  return toolNames.tools.map((tool) => ({
    type: 'function',
    function: {
      name: toolNames.wireName(tool),
      description: describeTool(tool) ?? undefined,
      parameters: parametersOf(tool),
      ...(quirks.strictTools && tool.type === 'function' ? { strict: isStrict(tool) } : {}),
    },
  }))
}

/** The `tool_choice` of a chat request; undefined where the upstream's default says the same. */
export function encodeToolChoice(choice: ToolChoice, toolNames: ToolNames): unknown {
  if (choice.type === 'tool') {
    return { type: 'function', function: { name: toolNames.wireName(choice) } }
  }
  const isRequired =
    choice.type === 'required' || (choice.type === 'allowed' && choice.mode === 'required')
  return isRequired ? 'required' : undefined
}

/** A caller who says nothing about `strict` means it, as far as the schema can bear it. */
function isStrict(tool: Extract<Tool, { type: 'function' }>): boolean {
  return tool.strict ?? isClosedSchema(tool.parameters, 0)
}

/** Strict mode wants every object closed and every property required. */
const schemaDepthMax = 32

function isClosedSchema(schema: unknown, depth: number): boolean {
  if (!isRecord(schema) || depth > schemaDepthMax) return false
  if (schema['type'] === 'array') return isClosedSchema(schema['items'], depth + 1)
  if (schema['type'] !== 'object') return typeof schema['type'] === 'string'
  const { properties, required } = schema
  if (schema['additionalProperties'] !== false || !isRecord(properties)) return false
  const names = Object.keys(properties)
  if (!Array.isArray(required) || names.some((name) => !required.includes(name))) return false
  return names.every((name) => isClosedSchema(properties[name], depth + 1))
}
