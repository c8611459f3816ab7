import { createHash } from 'node:crypto'

/** The longest function name that every upstream accepts. */
const nameCharsMax = 64
const hashChars = 8

/**
 * The name under which a model is offered a tool of a remote server. It is the same in every
 * request, so that calls of earlier turns keep their names.
 */
export function mcpToolName(label: string, tool: string): string {
  const name = `mcp__${label}__${tool}`
  const isLegal = name.length <= nameCharsMax && /^[a-zA-Z0-9_-]+$/.test(name)
  return isLegal ? name : hashedMcpToolName(label, tool)
}

/** Another name for the same tool, for where somebody else bears the first one. */
export function hashedMcpToolName(label: string, tool: string): string {
  const name = `mcp__${label}__${tool}`.replace(/[^a-zA-Z0-9_-]/g, '_')
  const hash = createHash('sha256').update(`${label}\n${tool}`).digest('hex').slice(0, hashChars)
  return `${name.slice(0, nameCharsMax - hashChars - 1)}_${hash}`
}
