import type { ToolName } from '#inference/request.ts'
import { forbiddenCall } from '#inference/tool-choice.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { createPart, missingText, notePiece, type Part } from './part.ts'
import { readText, readToolInput } from './read.ts'
import { begin, createLane, type Lane, put, type Sequence } from './sequence.ts'
import type { ToolCallType } from './wire.ts'

/** A function or custom tool call. It begins when its name is known; until then input is held. */
export type ToolCall = {
  readonly kind: 'tool-call'
  readonly lane: Lane
  readonly ledger: ToolCallLedger
  readonly input: Part<'function' | 'custom'>
  name: string | null
  namespace: string | null
  callId: string | null
  /** Input that came before the name. */
  early: string
  isOpen: boolean
}

/** What the calls of one generation share. */
export type ToolCallLedger = {
  readonly takenCallIds: Set<string>
  readonly mayCall: (tool: ToolName) => boolean
  readonly mintCallId: () => string
  /** How much argument text may still come. */
  charsLeft: number
}

export const inputFields = { function_call: 'arguments', custom_tool_call: 'input' } as const

export function createToolCall(
  sequence: Sequence,
  itemType: ToolCallType,
  ledger: ToolCallLedger,
): ToolCall {
  const call: ToolCall = {
    kind: 'tool-call',
    lane: createLane(sequence, 'tool-call', (complete) => closeBlock(call, complete)),
    ledger,
    input: createPart(itemType === 'function_call' ? 'function' : 'custom'),
    name: null,
    namespace: null,
    callId: null,
    early: '',
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
  const { ledger, lane } = call
  // A call that gave up the floor was complete; nothing can be added to it.
  if (text === '' || (lane.begun && !call.isOpen)) return
  ledger.charsLeft -= text.length
  if (ledger.charsLeft < 0) {
    throw new AppError(
      'upstream_invalid_answer',
      'The upstream sent more tool-call arguments than a generation may have.',
    )
  }
  notePiece(call.input, text)
  if (lane.begun) put(lane, { type: 'tool-call-delta', block: lane.block, text })
  else call.early += text
}

/** Takes the whole input and passes on what was not streamed of it; older servers add the name. */
export function completeToolInput(call: ToolCall, event: JsonObject, text: string): void {
  call.name ??= readText(event['name'])
  addToolInput(call, missingText(call.input, text))
}

export function finishToolCall(call: ToolCall, item: JsonObject): void {
  announceToolCall(call, item)
  if (call.name === null) {
    throw new AppError('upstream_invalid_answer', 'The upstream called a tool without a name.')
  }
  const field = call.input.label === 'function' ? 'arguments' : 'input'
  addToolInput(call, missingText(call.input, readToolInput(item[field])))
}

function openBlock(call: ToolCall, name: string): void {
  const { lane, ledger, namespace, early } = call
  const tool = namespace === null ? { name } : { name, namespace }
  if (!ledger.mayCall(tool)) throw forbiddenCall()
  call.isOpen = true
  begin(lane, {
    type: 'tool-call-start',
    block: lane.block,
    call: { callId: claimCallId(ledger, call.callId), ...tool, form: call.input.label },
  })
  if (early !== '') put(lane, { type: 'tool-call-delta', block: lane.block, text: early })
  call.early = ''
}

/** A call without arguments has the empty object: an empty text is no JSON. */
function closeBlock(call: ToolCall, complete: boolean): void {
  if (!call.isOpen) return
  const { lane, input } = call
  const { block } = lane
  if (complete && input.label === 'function' && input.sentChars === 0) {
    put(lane, { type: 'tool-call-delta', block, text: '{}' })
  }
  put(lane, { type: 'tool-call-end', block, complete })
  call.isOpen = false
}

/** A call id that no other call of this generation has: a new one where it is taken or missing. */
function claimCallId(ledger: ToolCallLedger, callId: string | null): string {
  const { takenCallIds } = ledger
  const claimed = callId === null || takenCallIds.has(callId) ? ledger.mintCallId() : callId
  takenCallIds.add(claimed)
  return claimed
}
