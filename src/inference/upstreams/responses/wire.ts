import type { TextForm } from '#inference/events.ts'

/**
 * What the events of the Responses format mean. Streams are decoded by this table, so a server's own
 * event name (vLLM's `reasoning_part`, the `reasoning.delta` of Open Responses) is a line here, not
 * a branch in the decoder. An event that is not in it is ignored.
 */
export type EventMeaning =
  | { about: 'text'; form: TextForm; step: 'delta' | 'done' }
  | { about: 'reasoning'; carrier: ReasoningCarrier; step: 'delta' | 'done' }
  | { about: 'part'; of: 'content' | ReasoningCarrier; step: 'added' | 'done' }
  | { about: 'annotation' }
  | { about: 'tool-input'; itemType: ToolCallType; step: 'delta' | 'done' }
  | { about: 'item'; step: 'added' | 'done' }
  | { about: 'hosted-tool'; itemType: string; stage: string }
  | { about: 'end'; status: EndStatus }
  | { about: 'error' }

/** A reasoning item carries its raw text in `content` and a summary for display in `summary`. */
export type ReasoningCarrier = 'raw' | 'summary'

export type ToolCallType = 'function_call' | 'custom_tool_call'

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

export const hostedToolTypes: ReadonlySet<string> = new Set(Object.keys(hostedToolStages))

const answer = { about: 'text', form: 'answer' } as const
const refusal = { about: 'text', form: 'refusal' } as const
const raw = { about: 'reasoning', carrier: 'raw' } as const
const summary = { about: 'reasoning', carrier: 'summary' } as const
const functionInput = { about: 'tool-input', itemType: 'function_call' } as const
const customInput = { about: 'tool-input', itemType: 'custom_tool_call' } as const

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
  ['response.output_item.added', { about: 'item', step: 'added' }],
  ['response.output_item.done', { about: 'item', step: 'done' }],
  ['response.completed', { about: 'end', status: 'completed' }],
  ['response.incomplete', { about: 'end', status: 'incomplete' }],
  ['response.failed', { about: 'end', status: 'failed' }],
  ['response.cancelled', { about: 'end', status: 'cancelled' }],
  ['response.error', { about: 'error' }],
  ['error', { about: 'error' }],
  ...Object.entries(hostedToolStages).flatMap(([itemType, stages]) =>
    stages.map((stage): [string, EventMeaning] => [
      `response.${itemType}.${stage}`,
      { about: 'hosted-tool', itemType, stage },
    ]),
  ),
])

/** The body of POST /responses: the fields that Sluice sends. */
export type ResponsesBody = {
  model: string
  input: WireItem[]
  stream: true
  store: false
  instructions?: string
  tools?: WireTool[]
  tool_choice?: WireToolChoice
  parallel_tool_calls?: boolean
  text?: { format?: WireFormat; verbosity?: string }
  reasoning?: { effort?: string; summary?: string }
  include?: string[]
  temperature?: number
  top_p?: number
  presence_penalty?: number
  frequency_penalty?: number
  max_output_tokens?: number
  top_logprobs?: number
  prompt_cache_key?: string
  safety_identifier?: string
  service_tier?: string
}

export type WireItem =
  | {
      type: 'message'
      role: string
      content: string | WirePart[]
      phase?: string
      status?: 'completed'
    }
  | { type: 'function_call'; call_id: string; name: string; namespace?: string; arguments: string }
  | { type: 'custom_tool_call'; call_id: string; name: string; namespace?: string; input: string }
  | {
      type: 'function_call_output' | 'custom_tool_call_output'
      call_id: string
      output: string | WirePart[]
    }
  | {
      type: 'reasoning'
      summary: { type: 'summary_text'; text: string }[]
      content?: { type: 'reasoning_text'; text: string }[]
      encrypted_content?: string
    }

export type WirePart =
  | { type: 'input_text'; text: string }
  | { type: 'output_text'; text: string; annotations: [] }
  | { type: 'refusal'; refusal: string }
  | { type: 'input_image'; image_url: string; detail: string }
  | { type: 'input_file'; file_data?: string; file_url?: string; filename?: string }

export type WireTool = WireFunctionTool | WireCustomTool | WireNamespaceTool

export type WireFunctionTool = {
  type: 'function'
  name: string
  description?: string
  parameters: Readonly<Record<string, unknown>>
  strict?: boolean
}

export type WireCustomTool = {
  type: 'custom'
  name: string
  description?: string
  format?: { type: 'grammar'; syntax: string; definition: string }
}

export type WireNamespaceTool = {
  type: 'namespace'
  name: string
  description: string
  tools: (WireFunctionTool | WireCustomTool)[]
}

export type WireToolChoice =
  | 'none'
  | 'auto'
  | 'required'
  | WireToolReference
  | { type: 'allowed_tools'; mode: 'auto' | 'required'; tools: WireToolReference[] }

type WireToolReference = { type: 'function' | 'custom'; name: string; namespace?: string }

export type WireFormat =
  | { type: 'json_object' }
  | {
      type: 'json_schema'
      name: string
      schema: Readonly<Record<string, unknown>>
      description?: string
      strict?: boolean
    }
