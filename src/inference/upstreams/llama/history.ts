import {
  argumentsObject,
  markLateSystem,
  reasoningText,
  splitHead,
} from '#inference/message-parts.ts'
import type { ContentPart, GenerationRequest, RequestItem } from '#inference/request.ts'
import type { ToolNames } from '#inference/tools.ts'
import {
  indexResults,
  markFailure,
  missingResult,
  refuseOrphans,
  type ToolResultItem,
} from '#inference/tools.ts'
import { AppError } from '#lib/errors.ts'
import type { ChatItem, ModelPart } from './wire.ts'

/**
 * Converts items to the package's chat history: one system message at the head, then turns of the user
 * and the model. A model turn contains its calls with their results and continues after them. The last
 * item is the model turn that the generation continues. `note`: added to the system message.
 */
export function encodeHistory(
  request: GenerationRequest,
  { toolNames, note }: { toolNames: ToolNames; note: string | null },
): ChatItem[] {
  const { head, rest } = splitHead(request.items)
  const results = indexResults(rest)
  const system = [request.instructions ?? '', ...head.map(({ parts }) => textOf(parts)), note ?? '']
    .filter((text) => text !== '')
    .join('\n\n')
  const history: ChatItem[] = system === '' ? [] : [{ type: 'system', text: system }]
  for (const item of rest) {
    if (item.type === 'tool-result') continue
    if (item.type === 'message' && item.role !== 'assistant') addUserText(history, item)
    else currentModelTurn(history).push(...encodeModelItem(item, results, toolNames))
  }
  refuseOrphans(results)
  if (!continuesTurn(request)) history.push({ type: 'model', response: [] })
  else currentModelTurn(history)
  return history
}

/** Whether the model continues its turn: after the results of its calls, or from a prefill. */
function continuesTurn({ items, prefilled = false }: GenerationRequest): boolean {
  const last = items.at(-1)
  return prefilled || last?.type === 'tool-result' || last?.type === 'tool-call'
}

/** Templates require alternating turns, so consecutive user texts are joined. */
function addUserText(
  history: ChatItem[],
  { role, parts }: Extract<RequestItem, { type: 'message' }>,
): void {
  const text = role === 'user' ? textOf(parts) : markLateSystem(textOf(parts))
  const last = history.at(-1)
  if (last?.type === 'user') last.text += `\n\n${text}`
  else history.push({ type: 'user', text })
}

/** The parts of the model's current turn; a new one after a user turn. */
function currentModelTurn(history: ChatItem[]): ModelPart[] {
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
    case 'native':
      return []
    case 'reasoning': {
      // Reasoning with a known maker comes from an upstream, to which alone it returns.
      const text = item.sealedBy === undefined ? reasoningText(item) : ''
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
          params: argumentsObject(item),
          result: result === undefined ? missingResult(item) : textOf(markFailure(result)),
        },
      ]
    }
  }
}

/** The text of a message; throws `invalid_request` for other content. */
function textOf(parts: readonly ContentPart[]): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text
      throw new AppError(
        'invalid_request',
        `The model runs on this machine and reads only text, but the input contains ${part.type}s.`,
        { param: 'input' },
      )
    })
    .join('\n')
}
