import { type HostedEventName, hostedEventNames } from '#inference/events.ts'

/**
 * What the events of the Responses format mean. Streams are decoded by this table, so a server's own
 * event name (vLLM's `reasoning_part`, the `reasoning.delta` of Open Responses) is a line here, not
 * a branch in the decoder. An event that is not in it is ignored.
 */
export type EventMeaning =
  | {
      about: 'text'
      type: 'message' | 'reasoning'
      kind: 'message' | 'reasoning'
      label: TextLabel
      step: 'delta' | 'done'
    }
  | { about: 'part'; of: 'content' | 'raw' | 'summary'; step: 'added' | 'done' }
  | { about: 'annotation' }
  | { about: 'tool-input'; type: ToolCallType; kind: 'tool-call'; step: 'delta' | 'done' }
  | { about: 'item-added' | 'item-done' }
  | { about: 'hosted-tool'; type: string; stage: string }
  | { about: 'hosted-input'; type: string; field: string; step: 'delta' | 'done' }
  | { about: 'hosted-event'; name: HostedEventName }
  | { about: 'end'; status: EndStatus }
  | { about: 'error' }

/**
 * The kinds of text in a message (`answer`, `refusal`) and in a reasoning item, which carries its raw
 * text in `content` and a summary for display in `summary`.
 */
export type TextLabel = 'answer' | 'refusal' | 'raw' | 'summary'

/** The field of a tool call that carries its input. */
export const inputFields = { function_call: 'arguments', custom_tool_call: 'input' } as const

export type ToolCallType = keyof typeof inputFields

export type EndStatus = 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** The item types of tools that run at the upstream, with the stages that their events report. */
const hostedToolStages: Readonly<Record<string, readonly string[]>> = {
  additional_tools: [],
  apply_patch_call: [],
  apply_patch_call_output: [],
  code_interpreter_call: ['in_progress', 'interpreting', 'completed'],
  compaction: ['compacting'],
  computer_call: [],
  computer_call_output: [],
  custom_tool_call_output: [],
  file_search_call: ['in_progress', 'searching', 'completed'],
  function_call_output: [],
  image_generation_call: ['in_progress', 'generating', 'completed'],
  local_shell_call: [],
  local_shell_call_output: [],
  mcp_approval_request: [],
  mcp_approval_response: [],
  mcp_call: ['in_progress', 'completed', 'failed'],
  mcp_list_tools: ['in_progress', 'completed', 'failed'],
  program: [],
  program_output: [],
  shell_call: [],
  shell_call_output: [],
  tool_search_call: [],
  tool_search_output: [],
  web_search_call: ['in_progress', 'searching', 'completed'],
}

const mcpInput = { about: 'hosted-input', type: 'mcp_call', field: 'arguments' } as const
const codeInput = { about: 'hosted-input', type: 'code_interpreter_call', field: 'code' } as const
const message = { about: 'text', type: 'message', kind: 'message' } as const
const answer = { ...message, label: 'answer' } as const
const refusal = { ...message, label: 'refusal' } as const
const reasoning = { about: 'text', type: 'reasoning', kind: 'reasoning' } as const
const raw = { ...reasoning, label: 'raw' } as const
const summary = { ...reasoning, label: 'summary' } as const
const toolInput = { about: 'tool-input', kind: 'tool-call' } as const
const functionInput = { ...toolInput, type: 'function_call' } as const
const customInput = { ...toolInput, type: 'custom_tool_call' } as const

export const eventMeanings: ReadonlyMap<string, EventMeaning> = new Map<string, EventMeaning>([
  ['response.output_text.delta', { ...answer, step: 'delta' }],
  ['response.output_text.done', { ...answer, step: 'done' }],
  ['response.output_text.annotation.added', { about: 'annotation' }],
  ['response.refusal.delta', { ...refusal, step: 'delta' }],
  ['response.refusal.done', { ...refusal, step: 'done' }],
  ['response.reasoning_text.delta', { ...raw, step: 'delta' }],
  ['response.reasoning_text.done', { ...raw, step: 'done' }],
  ['response.reasoning.delta', { ...raw, step: 'delta' }],
  ['response.reasoning.done', { ...raw, step: 'done' }],
  ['response.reasoning_summary_text.delta', { ...summary, step: 'delta' }],
  ['response.reasoning_summary_text.done', { ...summary, step: 'done' }],
  ['response.content_part.added', { about: 'part', of: 'content', step: 'added' }],
  ['response.content_part.done', { about: 'part', of: 'content', step: 'done' }],
  ['response.reasoning_part.added', { about: 'part', of: 'raw', step: 'added' }],
  ['response.reasoning_part.done', { about: 'part', of: 'raw', step: 'done' }],
  ['response.reasoning_summary_part.added', { about: 'part', of: 'summary', step: 'added' }],
  ['response.reasoning_summary_part.done', { about: 'part', of: 'summary', step: 'done' }],
  ['response.function_call_arguments.delta', { ...functionInput, step: 'delta' }],
  ['response.function_call_arguments.done', { ...functionInput, step: 'done' }],
  ['response.custom_tool_call_input.delta', { ...customInput, step: 'delta' }],
  ['response.custom_tool_call_input.done', { ...customInput, step: 'done' }],
  ['response.mcp_call_arguments.delta', { ...mcpInput, step: 'delta' }],
  ['response.mcp_call_arguments.done', { ...mcpInput, step: 'done' }],
  ['response.code_interpreter_call_code.delta', { ...codeInput, step: 'delta' }],
  ['response.code_interpreter_call_code.done', { ...codeInput, step: 'done' }],
  ...hostedEventNames.map((name): [string, EventMeaning] => [
    `response.${name}`,
    { about: 'hosted-event', name },
  ]),
  ['response.output_item.added', { about: 'item-added' }],
  ['response.output_item.done', { about: 'item-done' }],
  ['response.completed', { about: 'end', status: 'completed' }],
  ['response.incomplete', { about: 'end', status: 'incomplete' }],
  ['response.failed', { about: 'end', status: 'failed' }],
  ['response.cancelled', { about: 'end', status: 'cancelled' }],
  ['response.error', { about: 'error' }],
  ['error', { about: 'error' }],
  ...Object.entries(hostedToolStages).flatMap(([type, stages]) =>
    stages.map((stage): [string, EventMeaning] => [
      `response.${type}.${stage}`,
      { about: 'hosted-tool', type, stage },
    ]),
  ),
])
