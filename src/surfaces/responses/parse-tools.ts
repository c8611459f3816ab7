import type { CustomTool, FunctionTool, Tool } from '#inference/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { badField, createReader, quote, readType } from './read-object.ts'
import { customTool, functionTool, grammarFormat, namespaceTool } from './schema.ts'

const readFunction = createReader(functionTool)
const readCustom = createReader(customTool)
const readGrammar = createReader(grammarFormat)
const readNamespace = createReader(namespaceTool)

export type ParsedTools = {
  /** What a model can be offered; namespaces are flattened. */
  tools: readonly Tool[]
  /** The types of the tools that were left out, each once. */
  ignored: readonly string[]
  /** What the Response object says was sent. */
  echo: readonly JsonObject[]
}

/** `tools` of a request. A tool of an unknown type is left out, never an error. */
export function parseTools(values: readonly unknown[], toolsMax: number): ParsedTools {
  const tools: Tool[] = []
  const ignored = new Set<string>()
  const seen = new Set<string>()

  const addAll = (list: readonly unknown[], path: string, namespace?: string) => {
    for (const [index, value] of list.entries()) add(value, `${path}[${index}]`, namespace)
  }
  const add = (value: unknown, path: string, namespace?: string) => {
    const type = readType(value, path)
    if (type === 'namespace' && namespace === undefined) {
      const inner = readNamespace(value, path)
      addAll(inner.tools, `${path}.tools`, inner.name)
    } else if (type === 'function' || type === 'custom') {
      const tool = type === 'function' ? parseFunction(value, path) : parseCustom(value, path)
      const key = `${namespace ?? ''}/${tool.name}`
      if (seen.has(key)) throw badField(`${path}.name`, `is ${quote(tool.name)} a second time`)
      seen.add(key)
      tools.push(namespace === undefined ? tool : { ...tool, namespace })
    } else {
      ignored.add(type)
    }
    if (tools.length > toolsMax) throw tooMany(toolsMax)
  }

  if (values.length > toolsMax) throw tooMany(toolsMax)
  addAll(values, 'tools')
  return { tools, ignored: [...ignored], echo: values.filter(isRecord).map(echoTool) }
}

function tooMany(toolsMax: number) {
  return badField('tools', `must not have more than ${toolsMax} tools`)
}

function parseFunction(value: unknown, path: string): FunctionTool {
  if (isRecord(value) && value['name'] === undefined && isRecord(value['function'])) {
    throw badField(`${path}.name`, 'is required beside type, not inside of function')
  }
  const { name, description = null, parameters = null, strict = null } = readFunction(value, path)
  return { type: 'function', name, description, parameters, strict }
}

function parseCustom(value: unknown, path: string): CustomTool {
  const { name, description = null, format } = readCustom(value, path)
  return { type: 'custom', name, description, grammar: parseGrammar(format, `${path}.format`) }
}

function parseGrammar(format: JsonObject | undefined, path: string): CustomTool['grammar'] {
  if (format === undefined) return null
  const type = readType(format, path)
  if (type === 'text') return null
  if (type !== 'grammar') throw badField(`${path}.type`, 'must be text or grammar')
  const { syntax, definition } = readGrammar(format, path)
  return { syntax, definition }
}

/**
 * Open Responses wants every field of a function tool, null where it was not sent. Credentials of
 * a remote server are not repeated: a Response is stored and logged by those who receive it.
 */
function echoTool(tool: JsonObject): JsonObject {
  if (tool['type'] === 'function') {
    const { description = null, parameters = null, strict = null } = tool
    return { ...tool, description, parameters, strict }
  }
  const { authorization: _, headers: __, ...rest } = tool
  return rest
}
