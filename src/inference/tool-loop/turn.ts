import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { RequestItem } from '#inference/request.ts'
import type { HostedCall, HostedOutcome, HostedTools } from './hosted-tools.ts'
import { collectTurnItems } from './turn-items.ts'

/** A hosted call of one turn. */
type TurnCall = {
  readonly call: HostedCall
  readonly callId: string
  /** As far as the model has written them. */
  args: string
  /** Whether the model wrote it to its end. */
  isComplete: boolean
  /** Whether its item has begun. */
  isShown: boolean
}

type Finish = Extract<GenerationEvent, { type: 'finish' }>

/**
 * One run of the model, translated: calls of hosted tools become hosted items, the rest passes.
 * Blocks never overlap and a hosted item is open until its tool has run, which is after the turn;
 * so the first call is shown as it is written, and what follows it is held back until then. The
 * block numbers of what is made here are for the loop to set.
 */
export type Turn = {
  /** What can be shown at once. */
  take(batch: EventBatch): GenerationEvent[]
  /** The terminal event; null while there is none. */
  ending(): Finish | Extract<GenerationEvent, { type: 'error' }> | null
  /** The hosted calls, in order. */
  calls(): readonly TurnCall[]
  /** Calls of tools that the caller runs. */
  callerCalls(): number
  /** What was held back, in order: events, and the calls in their places. */
  held(): readonly (GenerationEvent | TurnCall)[]
  /** What the model is told that it did in this turn. */
  items(): readonly RequestItem[]
}

export function createTurn(hosted: Pick<HostedTools, 'call'>): Turn {
  const calls: TurnCall[] = []
  const held: (GenerationEvent | TurnCall)[] = []
  const items = collectTurnItems()
  let writing: TurnCall | null = null
  let ending: ReturnType<Turn['ending']> = null
  let callerCalls = 0

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
    items.take(event)
    if (event.type === 'tool-call-start') {
      const { callId, name, namespace } = event.call
      const call = namespace === undefined ? hosted.call(name) : null
      if (call !== null) return begin({ ...newCall, call, callId })
      callerCalls++
    }
    if (writing !== null && event.type === 'tool-call-delta') return write(writing, event.text)
    if (writing !== null && event.type === 'tool-call-end') return end(writing, event.complete)
    return pass(event)
  }
  return {
    take: (batch) => batch.flatMap(translate),
    ending: () => ending,
    calls: () => calls,
    callerCalls: () => callerCalls,
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

/** Everything of a piece of work before its outcome, where none of it was shown before. */
export function showCall(call: HostedCall, args: string): GenerationEvent[] {
  if (!call.streamsArguments) return openCall(call, args)
  return [
    ...openCall(call, ''),
    ...(args === '' ? [] : [{ type: 'hosted-tool-delta', block: 0, text: args } as const]),
    calling,
  ]
}

export function showOutcome({ stage, item }: HostedOutcome): GenerationEvent[] {
  return [
    ...(stage === null ? [] : [{ type: 'hosted-tool-progress', block: 0, stage } as const]),
    { type: 'hosted-tool-end', block: 0, item },
  ]
}
