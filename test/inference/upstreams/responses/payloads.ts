/** Payloads of a Responses stream, as OpenAI sends them unless a test says otherwise. */
export const created = {
  type: 'response.created',
  response: { id: 'resp_1', status: 'in_progress' },
}
export const message = { type: 'message', id: 'msg_1', role: 'assistant', content: [] }
export const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] }
export const call = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'add',
  arguments: '',
}

export const completed = (output?: unknown) => ({
  type: 'response.completed',
  response: { id: 'resp_1', status: 'completed', ...(output === undefined ? {} : { output }) },
})
export const added = (item: unknown, at: object = { output_index: 0 }) => ({
  type: 'response.output_item.added',
  ...at,
  item,
})
export const ended = (item: unknown, at: object = { output_index: 0 }) => ({
  type: 'response.output_item.done',
  ...at,
  item,
})
export const text = (delta: string, at: object = { item_id: 'msg_1', output_index: 0 }) => ({
  type: 'response.output_text.delta',
  ...at,
  delta,
})
export const thought = (delta: string, at: object = { item_id: 'rs_1', output_index: 0 }) => ({
  type: 'response.reasoning_text.delta',
  ...at,
  delta,
})
export const input = (delta: string, at: object = { item_id: 'fc_1', output_index: 0 }) => ({
  type: 'response.function_call_arguments.delta',
  ...at,
  delta,
})
export const saying = (...texts: string[]) => ({
  ...message,
  content: texts.map((each) => ({ type: 'output_text', text: each, annotations: [] })),
})
