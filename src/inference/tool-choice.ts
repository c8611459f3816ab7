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

export function isSameTool(one: ToolName, other: ToolName): boolean {
  return one.name === other.name && one.namespace === other.namespace
}

export function forbiddenCall(): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream called a tool that it was not allowed to call.',
  )
}
