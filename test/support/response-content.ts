import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'

/** The content of a response in a neutral form, to compare it with a recording. */
export type ResponseContent = {
  text: string
  reasoning: string
  calls: { name: string; input: string }[]
}

/** Of a Response object, of the gateway or of another server. */
export function contentOfResponse(response: JsonObject): ResponseContent {
  const content: ResponseContent = { text: '', reasoning: '', calls: [] }
  for (const item of list(response['output'])) {
    if (item['type'] === 'message') content.text += textsOf(item['content'])
    if (item['type'] === 'reasoning') {
      content.reasoning += textsOf(item['content']) || textsOf(item['summary'])
    }
    const input = item['arguments'] ?? item['input']
    if (item['type'] === 'function_call' || item['type'] === 'custom_tool_call') {
      content.calls.push({ name: String(item['name']), input: String(input) })
    }
  }
  return content
}

/** Of the payloads of a chat completions response, by joining their fields. */
export function contentOfChat(payloads: readonly string[]): ResponseContent {
  const answer: ResponseContent = { text: '', reasoning: '', calls: [] }
  for (const payload of payloads) {
    const [choice] = list(object(parseJson(payload))['choices'])
    const delta = object(choice?.['delta'] ?? choice?.['message'])
    const { content, reasoning_content: reasoning = '' } = delta
    answer.reasoning += reasoning ?? ''
    if (typeof content === 'string') answer.text += content
    for (const part of list(content)) {
      answer.text += part['text'] ?? ''
      answer.reasoning += textsOf(part['thinking'])
    }
    for (const { function: piece } of list(delta['tool_calls'])) {
      const { name, arguments: input } = object(piece)
      if (name) answer.calls.push({ name: String(name), input: '' })
      const call = answer.calls.at(-1)
      if (call !== undefined) call.input += input ?? ''
    }
  }
  return answer
}

/** Of a Responses stream: the content of its last event. */
export function contentOfResponsesStream(payloads: readonly string[]): ResponseContent {
  const ends = payloads
    .map((payload) => object(parseJson(payload)))
    .filter(({ type }) => type === 'response.completed' || type === 'response.incomplete')
  return contentOfResponse(object(ends[0]?.['response']))
}

/** Replaces generated ids by their order and times by 0, to compare the rest. */
export function normalise(text: string): string {
  const names = new Map<string, string>()
  return text
    .replace(/\b[a-z_]+_[0-9a-z]{26}\b/g, (id) => {
      const name = names.get(id) ?? `${id.slice(0, -26)}${names.size}`
      names.set(id, name)
      return name
    })
    .replace(/"(created_at|completed_at)":\d+/g, '"$1":0')
}

function textsOf(parts: unknown): string {
  return list(parts)
    .map((part) => part['text'] ?? part['refusal'] ?? '')
    .join('')
}

function object(value: unknown): JsonObject {
  return isRecord(value) ? value : {}
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
