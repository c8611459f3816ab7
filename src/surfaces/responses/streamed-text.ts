/** Where the streamed text of a content part or an item is, and the stem of its events. */
export type TextField = {
  readonly stem: string
  readonly field: string
  /** Without any delta there is no `done` event. */
  readonly isOptional?: true
}

/** By the type of the part or item. */
export const textFields: Readonly<Record<string, TextField>> = {
  output_text: { stem: 'response.output_text', field: 'text' },
  refusal: { stem: 'response.refusal', field: 'refusal' },
  reasoning_text: { stem: 'response.reasoning_text', field: 'text' },
  summary_text: { stem: 'response.reasoning_summary_text', field: 'text' },
  function_call: { stem: 'response.function_call_arguments', field: 'arguments' },
  custom_tool_call: { stem: 'response.custom_tool_call_input', field: 'input' },
  mcp_call: { stem: 'response.mcp_call_arguments', field: 'arguments', isOptional: true },
  code_interpreter_call: {
    stem: 'response.code_interpreter_call_code',
    field: 'code',
    isOptional: true,
  },
}

/** A part of an item: an entry of its content or of its summary. */
export type PartPlace = { readonly list: string; readonly indexName: string; readonly stem: string }

export const contentPart: PartPlace = {
  list: 'content',
  indexName: 'content_index',
  stem: 'response.content_part',
}
export const summaryPart: PartPlace = {
  list: 'summary',
  indexName: 'summary_index',
  stem: 'response.reasoning_summary_part',
}
