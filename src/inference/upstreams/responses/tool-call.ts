import { invalidResponse } from '#inference/decode-errors.ts'
import type { ToolName } from '#inference/request.ts'
import { forbiddenCall } from '#inference/tools.ts'
import { readJsonText, readText } from '#inference/upstream-fields.ts'
import type { JsonObject } from '#lib/json.ts'
import { createPart, type Part, recordSent, unsentText } from './part.ts'
import { appendEvent, type BlockSequence, beginBlock, createLane, type Lane } from './sequence.ts'
import type { ToolCallType } from './wire.ts'

/** A function or custom tool call. Its block begins when its name is known; input is buffered until then. */
export type ToolCall = {
  readonly kind: 'tool-call'
  readonly lane: Lane
  readonly context: ToolCallContext
  readonly input: Part<'function' | 'custom'>
  name: string | null
  namespace: string | null
  callId: string | null
  /** Input that arrived before the name. */
  pendingInput: string
  isOpen: boolean
}

/** State that the calls of one generation share. */
export type ToolCallContext = {
  readonly takenCallIds: Set<string>
  readonly mayCall: (tool: ToolName) => boolean
  readonly mintCallId: () => string
  /** How much more argument text is accepted, in characters. */
  argumentCharsLeft: number
}

export const inputFields = { function_call: 'arguments', custom_tool_call: 'input' } as const

export function createToolCall(
  sequence: BlockSequence,
  itemType: ToolCallType,
  context: ToolCallContext,
): ToolCall {
  const call: ToolCall = {
    kind: 'tool-call',
    lane: createLane(sequence, 'tool-call', (complete) => closeBlock(call, complete)),
    context,
    input: createPart(itemType === 'function_call' ? 'function' : 'custom'),
    name: null,
    namespace: null,
    callId: null,
    pendingInput: '',
    isOpen: false,
  }
  return call
}

export function announceToolCall(call: ToolCall, item: JsonObject): void {
  if (call.lane.begun) return
  call.name = readText(item['name']) ?? call.name
  call.namespace ??= readText(item['namespace'])
  call.callId ??= readText(item['call_id'])
  if (call.name !== null) openBlock(call, call.name)
}

export function addToolInput(call: ToolCall, text: string): void {
  const { context, lane } = call
  // A call whose lane yielded was complete; nothing can be added to it.
  if (text === '' || (lane.begun && !call.isOpen)) return
  context.argumentCharsLeft -= text.length
  if (context.argumentCharsLeft < 0) {
    throw invalidResponse('sent more tool-call arguments than the limit allows')
  }
  recordSent(call.input, text)
  if (lane.begun) appendEvent(lane, { type: 'tool-call-delta', block: lane.block, text })
  else call.pendingInput += text
}

/** Emits what was not streamed of the complete input; older servers send the name only here. */
export function completeToolInput(call: ToolCall, event: JsonObject, text: string): void {
  call.name ??= readText(event['name'])
  addToolInput(call, unsentText(call.input, text))
}

export function finishToolCall(call: ToolCall, item: JsonObject): void {
  announceToolCall(call, item)
  if (call.name === null) {
    throw invalidResponse('called a tool without a name')
  }
  const field = call.input.label === 'function' ? 'arguments' : 'input'
  addToolInput(call, unsentText(call.input, readJsonText(item[field])))
}

function openBlock(call: ToolCall, name: string): void {
  const { lane, context, namespace, pendingInput } = call
  const tool = namespace === null ? { name } : { name, namespace }
  if (!context.mayCall(tool)) throw forbiddenCall()
  call.isOpen = true
  beginBlock(lane, {
    type: 'tool-call-start',
    block: lane.block,
    call: { callId: claimCallId(context, call.callId), ...tool, form: call.input.label },
  })
  if (pendingInput !== '')
    appendEvent(lane, { type: 'tool-call-delta', block: lane.block, text: pendingInput })
  call.pendingInput = ''
}

/** A call without arguments gets the empty object: an empty text is not JSON. */
function closeBlock(call: ToolCall, complete: boolean): void {
  if (!call.isOpen) return
  const { lane, input } = call
  const { block } = lane
  if (complete && input.label === 'function' && input.sentChars === 0) {
    appendEvent(lane, { type: 'tool-call-delta', block, text: '{}' })
  }
  appendEvent(lane, { type: 'tool-call-end', block, complete })
  call.isOpen = false
}

/** Returns a call id that is unique in this generation: a new one where it is missing or taken. */
function claimCallId(context: ToolCallContext, callId: string | null): string {
  const { takenCallIds } = context
  const claimed = callId === null || takenCallIds.has(callId) ? context.mintCallId() : callId
  takenCallIds.add(claimed)
  return claimed
}
