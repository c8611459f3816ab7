import { expect } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { type ParseContext, parseCreateMessage } from '#surfaces/messages/parse.ts'
import { createMessage } from '#surfaces/messages/schema/request.ts'
import { checkDescribed } from '#test/support/described-shapes.ts'
import { testSeals } from '#test/support/sealing.ts'

/** Small, so that tests can exceed them. */
const limits = { inputCharsMax: 1000, inputItemsMax: 20, toolsMax: 10 }

export function contextWith(headers: Record<string, string> = {}): ParseContext {
  return { limits, seals: testSeals, headers: new Headers(headers) }
}

const body = { model: 'demo', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }

/** Parses the minimal body with further fields, which must conform to its schema. */
export function parse(fields: object, headers: Record<string, string> = {}) {
  const whole = { ...body, ...fields }
  const parsed = parseCreateMessage(whole, contextWith(headers))
  // The newer dialects accept any value of fields that they do not know.
  if (headers['anthropic-version'] === undefined) checkDescribed(createMessage, whole)
  return parsed
}

export type Message = { role: string; content: unknown }

/** The items of a conversation. */
export function itemsOf(...messages: Message[]) {
  return parse({ messages }).request.items
}

export const user = (...content: unknown[]): Message => ({ role: 'user', content: short(content) })
export const assistant = (...content: unknown[]): Message => ({
  role: 'assistant',
  content: short(content),
})

/** A single text is the content itself. */
function short(content: unknown[]): unknown {
  return content.length === 1 && typeof content[0] === 'string' ? content[0] : content
}

export const text = (words: string) => ({ type: 'text', text: words })
export const toolUse = (id: string, name = 'look', input: object = {}) => ({
  type: 'tool_use',
  id,
  name,
  input,
})
export const toolResult = (id: string, fields: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  ...fields,
})

/** Items in a short notation. */
export const messageItem = (role: string, ...texts: string[]) => ({
  type: 'message',
  role,
  parts: texts.map(text),
})
export const called = (callId: string, name = 'look', args = '{}') => ({
  type: 'tool-call',
  callId,
  name,
  form: 'function',
  arguments: args,
})
export const returned = (callId: string, ...texts: string[]) => ({
  type: 'tool-result',
  callId,
  form: 'function',
  parts: texts.map(text),
})

/** The error of a complete body; all of them have status 400. */
export function refusalOfBody(whole: unknown, headers: Record<string, string> = {}): string {
  try {
    const [refusal] = parseCreateMessage(whole, contextWith(headers)).needs.refusals
    // The error if no target of the model speaks this protocol.
    if (refusal !== undefined) throw refusal
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    expect([error.status, error.kind]).toEqual([400, 'invalid_request'])
    return error.message
  }
  throw new Error('the body was accepted')
}

export function refusalOf(fields: object, headers: Record<string, string> = {}): string {
  return refusalOfBody({ ...body, ...fields }, headers)
}

export function refusalOfMessages(...messages: Message[]): string {
  return refusalOf({ messages })
}
