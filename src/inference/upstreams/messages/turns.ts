import type {
  ContentPart,
  GenerationRequest,
  RequestItem,
  ToolCallItem,
} from '#inference/request.ts'
import type { ToolNames } from '#inference/tool-names.ts'
import {
  indexResults,
  missingResult,
  refuseOrphans,
  type ToolResultItem,
} from '#inference/tool-results.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { legalCallId } from './call-id.ts'
import { encodeParts, encodeText } from './content.ts'
import { encodeThinking } from './thinking.ts'
import type { WireBlock, WireMessage, WireToolResult } from './wire.ts'

/** `maker` names who will read the messages, as `ReasoningItem.sealedBy` does. */
export type TurnContext = { quirks: UpstreamQuirks; toolNames: ToolNames; maker: string }

/** Precedes an instruction that has to travel in the words of the user. */
const lateSystemMarker = '[System instruction]'

type Building = TurnContext & {
  readonly messages: WireMessage[]
  readonly results: Map<string, ToolResultItem[]>
  readonly usedIds: Set<string>
  /** What the assistant did since anybody else spoke. */
  turn: { blocks: WireBlock[]; calls: { id: string; callId: string }[] }
}

/**
 * Items in order become turns that alternate: system texts at the head go into `system`, each turn of
 * the assistant is one message, and the results of its calls come first in the turn of the user.
 */
export function encodeTurns(
  request: GenerationRequest,
  context: TurnContext,
): { system: string; messages: WireMessage[] } {
  const count = countHead(request.items)
  const head = request.items.slice(0, count).map((item) => ('parts' in item ? item.parts : []))
  const system = [request.instructions ?? '', ...head.map(readText)]
  const rest = request.items.slice(count)
  const building: Building = {
    ...context,
    messages: [],
    results: indexResults(rest),
    usedIds: new Set(),
    turn: { blocks: [], calls: [] },
  }
  for (const item of rest) takeItem(building, item)
  endTurn(building)
  refuseOrphans(building.results)
  trimPrefill(building.messages)
  return {
    system: system.filter((text) => text !== '').join('\n\n'),
    messages: building.messages,
  }
}

/** How many system texts lead the input. */
function countHead(items: readonly RequestItem[]): number {
  const end = items.findIndex((item) => !isSystem(item))
  return end === -1 ? items.length : end
}

function isSystem(item: RequestItem): boolean {
  return item.type === 'message' && (item.role === 'system' || item.role === 'developer')
}

function takeItem(building: Building, item: RequestItem): void {
  const { turn, quirks } = building
  switch (item.type) {
    case 'reasoning':
      turn.blocks.push(...encodeThinking(item, building.maker))
      return
    case 'tool-call':
      turn.blocks.push(encodeCall(building, item))
      return
    case 'message':
      if (item.role === 'assistant') {
        turn.blocks.push(...encodeText(readText(item.parts)))
        return
      }
      endTurn(building)
      if (item.role === 'user') addUserBlocks(building, encodeParts(item.parts, quirks))
      else addLateSystem(building, readText(item.parts))
      return
    case 'tool-result':
      // It goes with its call.
      endTurn(building)
  }
}

function encodeCall(building: Building, item: ToolCallItem): WireBlock {
  const id = takeId(building, item.callId)
  building.turn.calls.push({ id, callId: item.callId })
  return { type: 'tool_use', id, name: building.toolNames.wireName(item), input: encodeInput(item) }
}

/** A caller may use an id again in a later turn; the protocol knows each only once. */
function takeId({ usedIds }: Building, callId: string): string {
  const legal = legalCallId(callId)
  let id = legal
  for (let count = 2; usedIds.has(id); count++) id = `${legal}_${count}`
  usedIds.add(id)
  return id
}

/** Arguments that are no JSON object, because they were cut or are free text, are one field of it. */
function encodeInput({ form, arguments: text }: ToolCallItem): JsonObject {
  if (form === 'custom') return { input: text }
  if (text.trim() === '') return {}
  const parsed = parseJson(text)
  return isRecord(parsed) ? parsed : { input: text }
}

/** Thoughts that led to nothing are not worth a message. */
function endTurn(building: Building): void {
  const { blocks, calls } = building.turn
  building.turn = { blocks: [], calls: [] }
  if (blocks.every(isThinking)) return
  building.messages.push({ role: 'assistant', content: blocks })
  addUserBlocks(
    building,
    calls.map(({ id, callId }) => {
      const result = building.results.get(callId)?.shift()
      return encodeResult(id, result, building.quirks)
    }),
  )
}

export function isThinking({ type }: WireBlock): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

function encodeResult(
  id: string,
  result: ToolResultItem | undefined,
  quirks: UpstreamQuirks,
): WireToolResult {
  const content =
    result === undefined ? encodeText(missingResult) : encodeParts(result.parts, quirks)
  const isError = result === undefined || result.isError === true
  return {
    type: 'tool_result',
    tool_use_id: id,
    content,
    ...(isError ? { is_error: true } : {}),
  }
}

function addUserBlocks({ messages }: Building, blocks: readonly WireBlock[]): void {
  if (blocks.length === 0) return
  const last = messages.at(-1)
  if (last?.role === 'user') last.content.push(...blocks)
  else messages.push({ role: 'user', content: [...blocks] })
}

/**
 * An instruction in the middle stays in its place. Where the user has to say it, it joins the last
 * result of a turn that is nothing but results: templates drop the thoughts that led to those as
 * soon as the user says something else.
 */
function addLateSystem(building: Building, text: string): void {
  if (text === '') return
  if (building.quirks.lateSystemMessages) {
    building.messages.push({ role: 'system', content: text })
    return
  }
  const [block] = encodeText(`${lateSystemMarker}\n${text}`)
  if (block === undefined) return
  const last = building.messages.at(-1)
  const result = last?.role === 'user' ? last.content.at(-1) : undefined
  if (result?.type === 'tool_result') result.content.push(block)
  else addUserBlocks(building, [block])
}

/** A last turn of the assistant is for the model to go on with; it may not end in white space. */
function trimPrefill(messages: WireMessage[]): void {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return
  const block = last.content.at(-1)
  if (block?.type !== 'text') return
  block.text = block.text.trimEnd()
  if (block.text === '') last.content.pop()
  if (last.content.length === 0) messages.pop()
}

/** The text of a message whose role has nothing but text. */
function readText(parts: readonly ContentPart[]): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text
      throw new AppError('invalid_request', `Only a user message can hold ${part.type} content.`, {
        param: 'input',
      })
    })
    .join('')
}
