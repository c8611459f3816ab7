import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { RequestItem, ToolCallItem } from '#inference/request.ts'
import type { HostedCall, HostedOutcome, HostedTools } from './hosted-tools.ts'

/** A hosted call of one turn. */
type TurnCall = {
  readonly call: HostedCall
  readonly callId: string
  /** The arguments so far. */
  args: string
  /** Whether its arguments are complete. */
  isComplete: boolean
  /** Whether its item was started. */
  isShown: boolean
}

type Finish = Extract<GenerationEvent, { type: 'finish' }>

/**
 * One model run in which calls of hosted tools become hosted items; other events pass. Blocks never
 * overlap, and a hosted item stays open until its tool has run after the turn. So the first call streams,
 * and later events are held. The loop sets the block numbers.
 */
export type Turn = {
  /** Returns the events that can be emitted now. */
  push(batch: EventBatch): GenerationEvent[]
  /** The terminal event, once there is one. */
  ending(): Finish | Extract<GenerationEvent, { type: 'error' }> | null
  /** The hosted calls, in order. */
  calls(): readonly TurnCall[]
  /** The number of calls of client tools. */
  clientCalls(): number
  /** Held events and calls, in order. */
  held(): readonly (GenerationEvent | TurnCall)[]
  /** The model's output as input items for the next turn. */
  items(): readonly RequestItem[]
}

export function createTurn(hosted: Pick<HostedTools, 'call'>): Turn {
  const calls: TurnCall[] = []
  const held: (GenerationEvent | TurnCall)[] = []
  const items = collectTurnItems()
  let writing: TurnCall | null = null
  let ending: ReturnType<Turn['ending']> = null
  let clientCalls = 0

  const begin = (call: TurnCall): GenerationEvent[] => {
    writing = call
    calls.push(call)
    if (held.length > 0 || !call.call.streamsArguments) return []
    call.isShown = true
    return openCall(call.call, '')
  }
  const write = (call: TurnCall, text: string): GenerationEvent[] => {
    call.args += text
    return call.isShown ? [{ type: 'hosted-tool-delta', block: 0, text }] : []
  }
  const end = (call: TurnCall, isComplete: boolean): GenerationEvent[] => {
    const isFirst = held.length === 0
    call.isComplete = isComplete
    writing = null
    held.push(call)
    if (!isComplete || !isFirst) return []
    if (call.isShown) return [calling]
    call.isShown = true
    return openCall(call.call, call.args)
  }
  const pass = (event: GenerationEvent): GenerationEvent[] => {
    if (held.length === 0) return [event]
    held.push(event)
    return []
  }
  const translate = (event: GenerationEvent): GenerationEvent[] => {
    if (event.type === 'generation-start') return []
    if (event.type === 'finish' || event.type === 'error') {
      ending = event
      return []
    }
    items.add(event)
    if (event.type === 'tool-call-start') {
      const { callId, name, namespace } = event.call
      const call = namespace === undefined ? hosted.call(name) : null
      if (call !== null) return begin({ ...newCall, call, callId })
      clientCalls++
    }
    if (writing !== null && event.type === 'tool-call-delta') return write(writing, event.text)
    if (writing !== null && event.type === 'tool-call-end') return end(writing, event.complete)
    return pass(event)
  }
  return {
    push: (batch) => batch.flatMap(translate),
    ending: () => ending,
    calls: () => calls,
    clientCalls: () => clientCalls,
    held: () => held,
    items: items.items,
  }
}

const newCall = { args: '', isComplete: false, isShown: false }

/** The stage of a call whose arguments are complete. */
const calling: GenerationEvent = { type: 'hosted-tool-progress', block: 0, stage: 'calling' }

function openCall(call: HostedCall, args: string): GenerationEvent[] {
  return [
    { type: 'hosted-tool-start', block: 0, item: call.begin(args) },
    ...call.stages.map(
      (stage): GenerationEvent => ({ type: 'hosted-tool-progress', block: 0, stage }),
    ),
  ]
}

/** The events of a call before its outcome. */
export function callEvents(call: HostedCall, args: string): GenerationEvent[] {
  if (!call.streamsArguments) return openCall(call, args)
  return [
    ...openCall(call, ''),
    ...(args === '' ? [] : [{ type: 'hosted-tool-delta', block: 0, text: args } as const]),
    calling,
  ]
}

export function outcomeEvents({ stage, item }: HostedOutcome): GenerationEvent[] {
  return [
    ...(stage === null ? [] : [{ type: 'hosted-tool-progress', block: 0, stage } as const]),
    { type: 'hosted-tool-end', block: 0, item },
  ]
}

/** Collects the model's output of a turn as input items of the next one. */
type TurnItems = {
  add(event: GenerationEvent): void
  items(): readonly RequestItem[]
}

type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

function collectTurnItems(): TurnItems {
  const items: RequestItem[] = []
  let reasoning: { form: 'summary' | undefined; parts: string[]; part: number } | null = null
  let text: { start: EventOf<'text-start'>; text: string } | null = null
  let call: ToolCallItem | null = null

  const add = (event: GenerationEvent): void => {
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
  return { add, items: () => items }
}

function addReasoning(
  reasoning: { parts: string[]; part: number },
  { part, text }: EventOf<'reasoning-delta'>,
): void {
  if (part !== reasoning.part) reasoning.parts.push('')
  reasoning.part = part
  reasoning.parts[reasoning.parts.length - 1] += text
}

/** The format in which a client would send it, so that a later replay is identical. */
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
