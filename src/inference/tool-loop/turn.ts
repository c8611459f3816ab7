import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { RequestItem } from '#inference/request.ts'
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

type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

type BlockStart = EventOf<'text-start' | 'reasoning-start' | 'tool-call-start'>
type BlockEnd = EventOf<'text-end' | 'reasoning-end' | 'tool-call-end'>

/**
 * One model run in which calls of hosted tools become hosted items; other events pass. Blocks never
 * overlap, and a hosted item stays open until its tool has run after the turn. So the first call streams,
 * and later events are held. The loop sets the block numbers.
 */
export class Turn {
  /** The terminal event, once there is one. */
  ending: EventOf<'finish' | 'error'> | null = null
  /** The hosted calls, in order. */
  readonly calls: TurnCall[] = []
  /** The number of calls of client tools. */
  clientCalls = 0
  /** Held events and calls, in order. */
  readonly held: (GenerationEvent | TurnCall)[] = []
  /** The model's output as input items for the next turn. */
  readonly items: RequestItem[] = []
  readonly #hosted: Pick<HostedTools, 'call'>
  #writing: TurnCall | null = null
  /** The open block; `parts` are its texts so far. */
  #block: { readonly start: BlockStart; readonly parts: string[]; part: number } | null = null

  constructor(hosted: Pick<HostedTools, 'call'>) {
    this.#hosted = hosted
  }

  /** Returns the events that can be emitted now. */
  push(batch: EventBatch): GenerationEvent[] {
    return batch.flatMap((event) => this.#translate(event))
  }

  #translate(event: GenerationEvent): GenerationEvent[] {
    if (event.type === 'generation-start') return []
    if (event.type === 'finish' || event.type === 'error') {
      this.ending = event
      return []
    }
    this.#collect(event)
    if (event.type === 'tool-call-start') {
      const { callId, name, namespace } = event.call
      const call = namespace === undefined ? this.#hosted.call(name) : null
      if (call !== null) return this.#begin(call, callId)
      this.clientCalls++
    }
    if (this.#writing !== null && event.type === 'tool-call-delta') {
      this.#writing.args += event.text
      return this.#writing.isShown ? [{ ...event, type: 'hosted-tool-delta' }] : []
    }
    if (this.#writing !== null && event.type === 'tool-call-end') {
      return this.#end(this.#writing, event.complete)
    }
    if (this.held.length === 0) return [event]
    this.held.push(event)
    return []
  }

  #begin(call: HostedCall, callId: string): GenerationEvent[] {
    const isShown = this.held.length === 0 && call.streamsArguments
    this.#writing = { call, callId, args: '', isComplete: false, isShown }
    this.calls.push(this.#writing)
    return isShown ? openCall(call, '') : []
  }

  #end(call: TurnCall, isComplete: boolean): GenerationEvent[] {
    const isFirst = this.held.length === 0
    call.isComplete = isComplete
    this.#writing = null
    this.held.push(call)
    if (!isComplete || !isFirst) return []
    if (call.isShown) return [calling]
    call.isShown = true
    return openCall(call.call, call.args)
  }

  /** Adds a block that ends to `items`. */
  #collect(event: GenerationEvent) {
    switch (event.type) {
      case 'text-start':
      case 'reasoning-start':
      case 'tool-call-start':
        this.#block = { start: event, parts: [], part: -1 }
        break
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-call-delta': {
        if (this.#block === null) break
        const part = event.type === 'reasoning-delta' ? event.part : 0
        if (part !== this.#block.part) this.#block.parts.push('')
        this.#block.part = part
        this.#block.parts[this.#block.parts.length - 1] += event.text
        break
      }
      case 'text-end':
      case 'reasoning-end':
      case 'tool-call-end':
        if (this.#block !== null) this.items.push(...itemsOf(this.#block, event))
        this.#block = null
        break
      default:
    }
  }
}

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

/** A block in the format in which a client would send it, so that a later replay is identical. */
function itemsOf(
  { start, parts }: { start: BlockStart; parts: readonly string[] },
  end: BlockEnd,
): RequestItem[] {
  const text = parts.join('\n\n')
  switch (start.type) {
    case 'tool-call-start':
      return end.complete ? [{ type: 'tool-call', ...start.call, arguments: text }] : []
    case 'text-start': {
      if (text === '') return []
      const type = start.form === 'refusal' ? 'refusal' : 'text'
      const phase = start.phase === undefined ? {} : { phase: start.phase }
      return [{ type: 'message', role: 'assistant', parts: [{ type, text }], ...phase }]
    }
    case 'reasoning-start': {
      const { sealed, sealedBy } = end.type === 'reasoning-end' ? end : {}
      if (parts.length === 0 && sealed === undefined) return []
      return [
        {
          type: 'reasoning',
          summary: parts,
          text: start.form === 'summary' ? '' : text,
          ...(sealed === undefined ? {} : { sealed }),
          ...(sealedBy === undefined ? {} : { sealedBy }),
        },
      ]
    }
  }
}
