import type { ToolChoice } from '#inference/request.ts'

/**
 * What `tool_choice` means for a hosted tool that the model gets as one function. `listed`: it is one of
 * the allowed tools.
 */
export type HostedChoice = 'any' | 'forced' | 'listed' | 'forbidden'

/** The name of the function; `taken` are the names of the client's own tools. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name
  for (let number = 2; taken.has(free); number++) free = `${name}_${number}`
  return free
}

/** The tool choice of a request, in which the function has this name. */
export function chooseFunction(wanted: ToolChoice, choice: HostedChoice, name: string): ToolChoice {
  if (choice === 'listed' && wanted.type === 'allowed') {
    return { ...wanted, tools: [...wanted.tools, { name }] }
  }
  if (choice !== 'forced' || wanted.type !== 'required') return wanted
  return { type: 'tool', name, form: 'function' }
}
