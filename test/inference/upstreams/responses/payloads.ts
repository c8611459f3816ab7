/** Payloads of a Responses stream in OpenAI's order, unless a test changes it. */
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
export const itemAdded = (item: unknown, at: object = { output_index: 0 }) => ({
  type: 'response.output_item.added',
  ...at,
  item,
})
export const itemDone = (item: unknown, at: object = { output_index: 0 }) => ({
  type: 'response.output_item.done',
  ...at,
  item,
})
export const textDelta = (delta: string, at: object = { item_id: 'msg_1', output_index: 0 }) => ({
  type: 'response.output_text.delta',
  ...at,
  delta,
})
export const thought = (delta: string, at: object = { item_id: 'rs_1', output_index: 0 }) => ({
  type: 'response.reasoning_text.delta',
  ...at,
  delta,
})
export const argumentsDelta = (
  delta: string,
  at: object = { item_id: 'fc_1', output_index: 0 },
) => ({
  type: 'response.function_call_arguments.delta',
  ...at,
  delta,
})
export const messageWith = (...texts: string[]) => ({
  ...message,
  content: texts.map((each) => ({ type: 'output_text', text: each, annotations: [] })),
})
