import {
  argumentsObject,
  markLateSystem,
  reasoningText,
  splitHead,
  textOf,
} from '#inference/message-parts.ts'
import type {
  GenerationRequest,
  ReasoningItem,
  RequestItem,
  ToolCallItem,
} from '#inference/request.ts'
import type { ToolNames } from '#inference/tools.ts'
import {
  indexResults,
  missingResult,
  refuseOrphans,
  type ToolResultItem,
} from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeParts, encodeText } from './content.ts'
import { legalCallId, redactedData, type WireBlock, type WireMessage } from './wire.ts'

/** `targetName`: the target that reads the messages, as `ReasoningItem.sealedBy` names it. */
export type TurnOptions = { quirks: UpstreamQuirks; toolNames: ToolNames; targetName: string }

type TurnsState = TurnOptions & {
  readonly messages: WireMessage[]
  readonly results: Map<string, ToolResultItem[]>
  readonly takenIds: Set<string>
  /** The blocks of the assistant since the last item of another role. */
  turn: { blocks: WireBlock[]; calls: { id: string; item: ToolCallItem }[] }
}

/**
 * Converts items to alternating turns: leading system messages become `system`, each assistant turn
 * is one message, and the results of its calls precede the other content of the user's turn.
 */
export function encodeTurns(
  request: GenerationRequest,
  context: TurnOptions,
): { system: string; messages: WireMessage[] } {
  const { head, rest } = splitHead(request.items)
  const system = [request.instructions ?? '', ...head.map(({ parts }) => textOf(parts))]
  const state: TurnsState = {
    ...context,
    messages: [],
    results: indexResults(rest),
    takenIds: new Set(),
    turn: { blocks: [], calls: [] },
  }
  for (const item of rest) addItem(state, item)
  endTurn(state)
  refuseOrphans(state.results)
  trimPrefill(state.messages)
  return {
    system: system.filter((text) => text !== '').join('\n\n'),
    messages: state.messages,
  }
}

function addItem(state: TurnsState, item: RequestItem): void {
  const { turn, quirks } = state
  switch (item.type) {
    case 'reasoning':
      turn.blocks.push(...encodeThinking(item, state.targetName))
      return
    case 'tool-call':
      turn.blocks.push(encodeCall(state, item))
      return
    case 'message':
      if (item.role === 'assistant') {
        turn.blocks.push(...encodeText(textOf(item.parts)))
        return
      }
      endTurn(state)
      if (item.role === 'user') addUserBlocks(state, encodeParts(item.parts, quirks))
      else addLateSystem(state, textOf(item.parts))
      return
    case 'tool-result':
      // `endTurn` adds the results after their calls.
      endTurn(state)
      return
    case 'native':
  }
}

/** The block for reasoning of an earlier turn; none where this target did not seal it. */
function encodeThinking(item: ReasoningItem, targetName: string): WireBlock[] {
  const { sealed = '', sealedBy } = item
  if (sealed === '' || sealedBy !== targetName) return []
  const data = redactedData(sealed)
  if (data !== null) return [{ type: 'redacted_thinking', data }]
  return [{ type: 'thinking', thinking: reasoningText(item), signature: sealed }]
}

function encodeCall(state: TurnsState, item: ToolCallItem): WireBlock {
  const id = claimId(state, item.callId)
  state.turn.calls.push({ id, item })
  return {
    type: 'tool_use',
    id,
    name: state.toolNames.wireName(item),
    input: argumentsObject(item),
  }
}

/** Clients may reuse an id in a later turn; the protocol requires unique ids. */
function claimId({ takenIds: usedIds }: TurnsState, callId: string): string {
  const legal = legalCallId(callId)
  let id = legal
  for (let count = 2; usedIds.has(id); count++) id = `${legal}_${count}`
  usedIds.add(id)
  return id
}

/** A turn of nothing but thinking is dropped. */
function endTurn(state: TurnsState): void {
  const { blocks, calls } = state.turn
  state.turn = { blocks: [], calls: [] }
  if (blocks.every(isThinking)) return
  state.messages.push({ role: 'assistant', content: blocks })
  addUserBlocks(
    state,
    calls.map((call) => {
      const result = state.results.get(call.item.callId)?.shift()
      return encodeResult(call, result, state.quirks)
    }),
  )
}

export function isThinking({ type }: WireBlock): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

function encodeResult(
  { id, item }: { id: string; item: ToolCallItem },
  result: ToolResultItem | undefined,
  quirks: UpstreamQuirks,
): WireBlock {
  const content =
    result === undefined ? encodeText(missingResult(item)) : encodeParts(result.parts, quirks)
  const isError = result === undefined || result.isError === true
  return { type: 'tool_result', tool_use_id: id, content, ...(isError && { is_error: true }) }
}

function addUserBlocks({ messages }: TurnsState, blocks: readonly WireBlock[]): void {
  if (blocks.length === 0) return
  const last = messages.at(-1)
  if (last?.role === 'user') last.content.push(...blocks)
  else messages.push({ role: 'user', content: [...blocks] })
}

/**
 * Adds a system message after the head. Where the upstream accepts none there, it becomes part of the
 * user's turn; in a turn of only results it joins the last result, because templates drop the
 * reasoning before the results as soon as the user adds a text.
 */
function addLateSystem(state: TurnsState, text: string): void {
  if (text === '') return
  if (state.quirks.lateSystemMessages) {
    state.messages.push({ role: 'system', content: text })
    return
  }
  const [block] = encodeText(markLateSystem(text))
  if (block === undefined) return
  const last = state.messages.at(-1)
  const result = last?.role === 'user' ? last.content.at(-1) : undefined
  if (result?.content !== undefined) result.content.push(block)
  else addUserBlocks(state, [block])
}

/** A final assistant turn is a prefill, which must not end in white space. */
function trimPrefill(messages: WireMessage[]): void {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return
  const block = last.content.at(-1)
  if (block?.text === undefined) return
  block.text = block.text.trimEnd()
  if (block.text === '') last.content.pop()
  if (last.content.length === 0) messages.pop()
}
