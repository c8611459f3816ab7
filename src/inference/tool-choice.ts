import { AppError } from '#lib/errors.ts'
import type { ToolChoice, ToolName } from './request.ts'

/** Whether a choice lets the model call a tool; it says so of tools that nobody gave as well. */
export function mayCall(choice: ToolChoice, tool: ToolName): boolean {
  switch (choice.type) {
    case 'none':
      return false
    case 'allowed':
      return choice.tools.some((allowed) => isSameTool(allowed, tool))
    default:
      return true
  }
}

/** Whether a choice requires the model to call a tool. */
export function requiresCall(choice: ToolChoice): boolean {
  if (choice.type === 'allowed') return choice.mode === 'required'
  return choice.type === 'required' || choice.type === 'tool'
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
