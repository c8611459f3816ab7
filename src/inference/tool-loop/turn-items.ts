import type { GenerationEvent } from '#inference/events.ts'
import type { RequestItem, ToolCallItem } from '#inference/request.ts'

/** What the model did in one turn, as the next turn is told of it. */
export type TurnItems = {
  take(event: GenerationEvent): void
  items(): readonly RequestItem[]
}

type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

export function collectTurnItems(): TurnItems {
  const items: RequestItem[] = []
  let reasoning: { form: 'summary' | undefined; parts: string[]; part: number } | null = null
  let text: { start: EventOf<'text-start'>; text: string } | null = null
  let call: ToolCallItem | null = null

  const take = (event: GenerationEvent): void => {
    switch (event.type) {
      case 'reasoning-start':
        reasoning = { form: event.form, parts: [], part: -1 }
        break
      case 'reasoning-delta':
        if (reasoning !== null) addReasoning(reasoning, event)
        break
      case 'reasoning-end':
        if (reasoning !== null) items.push(...endReasoning(reasoning, event))
        reasoning = null
        break
      case 'text-start':
        text = { start: event, text: '' }
        break
      case 'text-delta':
        if (text !== null) text.text += event.text
        break
      case 'text-end':
        if (text !== null) items.push(...endText(text))
        text = null
        break
      case 'tool-call-start':
        call = { type: 'tool-call', ...event.call, arguments: '' }
        break
      case 'tool-call-delta':
        if (call !== null) call.arguments += event.text
        break
      case 'tool-call-end':
        if (call !== null && event.complete) items.push(call)
        call = null
        break
      default:
    }
  }
  return { take, items: () => items }
}

function addReasoning(
  reasoning: { parts: string[]; part: number },
  { part, text }: EventOf<'reasoning-delta'>,
): void {
  if (part !== reasoning.part) reasoning.parts.push('')
  reasoning.part = part
  reasoning.parts[reasoning.parts.length - 1] += text
}

/** In the form in which a caller would send it back, so that a later replay reads the same. */
function endReasoning(
  { form, parts }: { form: 'summary' | undefined; parts: string[] },
  { sealed, sealedBy }: EventOf<'reasoning-end'>,
): RequestItem[] {
  if (parts.length === 0 && sealed === undefined) return []
  return [
    {
      type: 'reasoning',
      summary: parts,
      text: form === 'summary' ? '' : parts.join('\n\n'),
      ...(sealed === undefined ? {} : { sealed }),
      ...(sealedBy === undefined ? {} : { sealedBy }),
    },
  ]
}

function endText({ start, text }: { start: EventOf<'text-start'>; text: string }): RequestItem[] {
  if (text === '') return []
  const type = start.form === 'refusal' ? 'refusal' : 'text'
  return [
    {
      type: 'message',
      role: 'assistant',
      parts: [{ type, text }],
      ...(start.phase === undefined ? {} : { phase: start.phase }),
    },
  ]
}
