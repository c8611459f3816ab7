import type { GenerationRequest, RequestItem, ToolCallItem } from '#inference/request.ts'
import { markFailure } from '#inference/tool-failure.ts'
import type { ToolNames } from '#inference/tool-names.ts'
import {
  indexResults,
  missingResult,
  refuseOrphans,
  type ToolResultItem,
} from '#inference/tool-results.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { textOf } from './text-parts.ts'
import type { ChatItem, ModelPart } from './wire.ts'

/** Precedes an instruction that has to travel in the words of the user. */
const lateSystemMarker = '[System instruction]'

/**
 * Items in order become what the package calls a history: the system texts that lead the input as one,
 * then turns of the user and the model. A turn of the model holds its calls with their results, and
 * goes on behind them. The last item is one of the model, where it is to go on.
 */
export function encodeHistory(
  request: GenerationRequest,
  { toolNames, note }: { toolNames: ToolNames; note: string | null },
): ChatItem[] {
  const { head, rest } = splitHead(request.items)
  const results = indexResults(rest)
  const system = [request.instructions ?? '', ...head, note ?? '']
    .filter((text) => text !== '')
    .join('\n\n')
  const history: ChatItem[] = system === '' ? [] : [{ type: 'system', text: system }]
  for (const item of rest) {
    if (item.type === 'tool-result') continue
    if (item.type === 'message' && item.role !== 'assistant') addUserText(history, item)
    else modelTurn(history).push(...encodeModelItem(item, results, toolNames))
  }
  refuseOrphans(results)
  if (!goesOn(request)) history.push({ type: 'model', response: [] })
  else modelTurn(history)
  return history
}

/** Whether the model goes on in the turn that it is in: after the results of its calls, or a beginning. */
function goesOn({ items, prefilled = false }: GenerationRequest): boolean {
  const last = items.at(-1)
  return prefilled || last?.type === 'tool-result' || last?.type === 'tool-call'
}

function splitHead(items: readonly RequestItem[]): {
  head: string[]
  rest: readonly RequestItem[]
} {
  const head: string[] = []
  for (const item of items) {
    if (item.type !== 'message' || (item.role !== 'system' && item.role !== 'developer')) break
    head.push(textOf(item.parts))
  }
  return { head, rest: items.slice(head.length) }
}

/** Templates want turns to alternate, so what follows a user's text joins it. */
function addUserText(
  history: ChatItem[],
  { role, parts }: Extract<RequestItem, { type: 'message' }>,
): void {
  const said = textOf(parts)
  const text = role === 'user' ? said : `${lateSystemMarker}\n${said}`
  const last = history.at(-1)
  if (last?.type === 'user') last.text += `\n\n${text}`
  else history.push({ type: 'user', text })
}

/** What the model does in the turn that it is in, or in one that begins here. */
function modelTurn(history: ChatItem[]): ModelPart[] {
  const last = history.at(-1)
  if (last?.type === 'model') return last.response
  const response: ModelPart[] = []
  history.push({ type: 'model', response })
  return response
}

function encodeModelItem(
  item: Exclude<RequestItem, { type: 'tool-result' }>,
  results: Map<string, ToolResultItem[]>,
  toolNames: ToolNames,
): ModelPart[] {
  switch (item.type) {
    case 'reasoning': {
      const text = item.text === '' ? item.summary.join('\n\n') : item.text
      return text === '' ? [] : [{ type: 'segment', segmentType: 'thought', text, ended: true }]
    }
    case 'message': {
      const text = textOf(item.parts)
      return text === '' ? [] : [text]
    }
    case 'tool-call': {
      const result = results.get(item.callId)?.shift()
      return [
        {
          type: 'functionCall',
          name: toolNames.wireName(item),
          params: encodeArguments(item),
          result: result === undefined ? missingResult : textOf(markFailure(result)),
        },
      ]
    }
  }
}

/** Arguments that are no JSON object, because they were cut or are free text, are one field of it. */
function encodeArguments({ form, arguments: text }: ToolCallItem): unknown {
  if (form === 'custom') return { input: text }
  if (text.trim() === '') return {}
  const parsed = parseJson(text)
  return isRecord(parsed) ? parsed : { input: text }
}
