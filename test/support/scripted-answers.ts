import { chatStream } from './recordings.ts'

/** Upstream responses that depend on the request. */

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
export const chunk = (delta: object, finish: string | null = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  model: 'upstream-name',
  choices: [{ index: 0, delta, finish_reason: finish }],
})
const call = (index: number, id: string, name: string, args: string) => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }],
})
const oslo = '{"city":"Oslo"}'
const rome = '{"city":"Rome"}'

/** The complete prompt in one line, so that tests see what the model got. */
function recall(messages: readonly Said[]): string {
  const tell = ({ role, type, content, reasoning_content: thought }: Said) => {
    const line = `${role ?? type} said ${readContent(content)}`
    return thought === undefined ? line : `reasoning said ${thought}; ${line}`
  }
  return messages.map(tell).join('; ')
}

/** A message of either protocol, or another item. */
type Said = { role?: string; type?: string; content?: unknown; reasoning_content?: string }

function readContent(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : ''
}

/** A call of the first tool, with valid arguments. */
function pickTool(tool: { name: string; parameters?: { properties?: object } }) {
  const properties = tool.parameters?.properties ?? {}
  if ('answer' in properties) return { name: tool.name, args: '{"answer":42}' }
  return { name: tool.name, args: 'city' in properties ? oslo : '{}' }
}

/** A chat upstream whose response depends on the request. */
export function chatAnswer(body: string): string {
  const request = JSON.parse(body)
  const last = request.messages.at(-1)
  const prompt = JSON.stringify(last.content)
  if (last.role === 'tool') {
    return chatStream([
      chunk({ content: `It is ${last.content}.` }),
      chunk({}, 'stop'),
      { choices: [], usage },
    ])
  }
  if (prompt.includes('recall')) {
    return chatStream([chunk({ content: recall(request.messages) }), chunk({}, 'stop')])
  }
  if (prompt.includes('parallel')) {
    return chatStream([
      chunk(call(0, 'a', 'get_weather', oslo)),
      chunk(call(1, 'b', 'get_weather', rome)),
      chunk({}, 'tool_calls'),
    ])
  }
  if (request.tools) {
    const { name, args } = pickTool(request.tools[0].function)
    return chatStream([chunk(call(0, 'a', name, args)), chunk({}, 'stop')])
  }
  if (request.response_format)
    return chatStream([chunk({ content: '{"answer":' }), chunk({ content: '42}' }, 'stop')])
  if (prompt.includes('think')) {
    return chatStream([
      chunk({ reasoning_content: 'Hm, ' }),
      chunk({ reasoning_content: 'yes.' }),
      chunk({ content: 'Yes.' }, 'stop'),
    ])
  }
  return chatStream([
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Hello ' }),
    chunk({ content: 'wörld' }),
    chunk({}, 'stop'),
    { choices: [], usage },
  ])
}

/** A native upstream as lenient as real servers: other ids, no sequence numbers. */
export function nativeAnswer(body: string): string {
  const request = JSON.parse(body)
  const last = request.input.at(-1)
  const prompt = JSON.stringify(last)
  const events: object[] = [
    { type: 'response.created', response: { id: 'x', status: 'in_progress' } },
  ]
  const output: object[] = []
  const say = (text: string) => {
    const at = output.length
    events.push({
      type: 'response.output_item.added',
      output_index: at,
      item: { type: 'message', id: `m${at}`, role: 'assistant', content: [] },
    })
    for (const piece of text.match(/\S+\s*/g) ?? []) {
      events.push({
        type: 'response.output_text.delta',
        output_index: at,
        item_id: `rotating-${Math.random()}`,
        delta: piece,
      })
    }
    const item = {
      type: 'message',
      id: `m${at}`,
      role: 'assistant',
      content: [{ type: 'output_text', text }],
    }
    events.push({ type: 'response.output_item.done', output_index: at, item })
    output.push(item)
  }
  const callTool = (callId: string, name: string, args: string) => {
    const at = output.length
    const item = {
      type: 'function_call',
      id: `f${at}`,
      call_id: callId,
      name,
      arguments: args,
    }
    events.push({
      type: 'response.output_item.added',
      output_index: at,
      item: { ...item, arguments: '' },
    })
    events.push({
      type: 'response.function_call_arguments.done',
      output_index: at,
      item_id: `f${at}`,
      arguments: item.arguments,
    })
    events.push({ type: 'response.output_item.done', output_index: at, item })
    output.push(item)
  }
  const think = (text: string) => {
    const at = output.length
    events.push({
      type: 'response.output_item.added',
      output_index: at,
      item: { type: 'reasoning', id: 'r', summary: [] },
    })
    events.push({
      type: 'response.reasoning_text.delta',
      output_index: at,
      item_id: 'r',
      delta: text,
    })
    const item = {
      type: 'reasoning',
      id: 'r',
      summary: [],
      content: [{ type: 'reasoning_text', text }],
    }
    events.push({ type: 'response.output_item.done', output_index: at, item })
    output.push(item)
  }
  if (last.type === 'function_call_output') say(`It is ${last.output}.`)
  else if (prompt.includes('recall')) say(recall(request.input))
  else if (prompt.includes('parallel')) {
    callTool('a', 'get_weather', oslo)
    callTool('b', 'get_weather', rome)
  } else if (request.tools?.length) {
    const { name, args } = pickTool(request.tools[0])
    callTool('a', name, args)
  } else if (request.text?.format?.type === 'json_schema') say('{"answer":42}')
  else if (prompt.includes('think')) {
    think('Hm, yes.')
    say('Yes.')
  } else say('Hello wörld')
  events.push({
    type: 'response.completed',
    response: {
      id: 'x',
      status: 'completed',
      output,
      usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
    },
  })
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
}
