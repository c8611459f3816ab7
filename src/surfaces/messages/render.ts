import { renderMessagesError } from '#http/error-envelope.ts'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import { estimateTextTokens } from '#inference/tokens.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import { type BlockTally, silentSink, type ThinkingDisplay } from './blocks/block.ts'
import { createBlockList } from './blocks/block-list.ts'
import { createMessageFold } from './fold.ts'
import { createFrameSink, pingFrame } from './frames.ts'
import { emptyMessage, type MessageObject } from './message.ts'
import { createRelayReader } from './relayed-frames.ts'
import { readEnd } from './stop-reason.ts'
import { estimatedUsage, type MessageUsage, renderUsage } from './usage.ts'

/** Turns events into the frames of one message, or into the object that they add up to. */
export type MessageRenderer = {
  readonly id: string
  push(batch: EventBatch): string
  /** What opens the stream when it must begin before there is anything to tell. */
  open(): string
  heartbeat(): string
  /** Ends the stream with an error that no event told. */
  fail(error: AppError): string
  /** The message, where no stream was wanted; throws where a stream would end with an error. */
  result(): MessageObject
}

export type MessageRendererOptions = {
  id: string
  /** The name that the caller used. */
  model: string
  /** What the input probably is, until the upstream tells what it was. */
  inputTokens: number
  reasoningSeal: ReasoningSeal
  thinkingDisplay: ThinkingDisplay
  /** Whether frames are wanted, or only the object at the end. */
  stream: boolean
}

/** SDKs swallow pings, so after so many in a silent block its own kind of event says it is alive. */
const pingsPerTouch = 4

type Finish = Extract<GenerationEvent, { type: 'finish' }>

export function createMessageRenderer(options: MessageRendererOptions): MessageRenderer {
  const { id, model, inputTokens } = options
  const fold = createMessageFold({ id, model })
  const frames = createFrameSink()
  const sink = options.stream ? frames : fold
  const readRelay = createRelayReader(options)
  const tally: BlockTally = { toolUses: 0, webSearches: 0, hasRefusal: false }
  /** Who writes: the upstream, until a batch comes without its frames, and from then on we alone. */
  let writer: 'none' | 'relay' | 'events' = 'none'
  const blocks = createBlockList({
    ...options,
    tally,
    sink: () => (writer === 'relay' ? silentSink : sink),
  })
  let isOver = false
  let failure: AppError | null = null
  let written = ''
  let pings = 0

  const closeFailed = (error: AppError) => {
    isOver = true
    failure = error
    return sink.fail(errorBody(error))
  }
  const close = (event: Finish) => {
    isOver = true
    const end = readEnd(event, tally)
    if (end instanceof AppError) return closeFailed(end)
    return sink.end(end, usageOf(event, { inputTokens, written, webSearches: tally.webSearches }))
  }
  const begin = () =>
    sink.begin(emptyMessage({ id, model, usage: estimatedUsage({ inputTokens, outputTokens: 0 }) }))
  const render = (event: GenerationEvent): string => {
    switch (event.type) {
      case 'generation-start':
        return begin()
      case 'finish':
        return close(event)
      case 'error':
        return closeFailed(event.error)
      default:
        if ('text' in event) written += event.text
        return blocks.push(event)
    }
  }
  /** A block of the upstream that no event speaks of cannot go on without it. */
  const takeOver = () => {
    const goesOn = writer !== 'relay' || blocks.takeOver(sink.isOpen())
    writer = 'events'
    return goesOn ? '' : sink.stop()
  }

  /** Keeps up with what the upstream says in its own words. */
  const follow = (batch: EventBatch) => {
    for (const event of batch) {
      if ('block' in event) {
        if ('text' in event) written += event.text
        blocks.push(event)
      }
      if (event.type === 'finish') isOver = true
    }
  }

  return {
    id,
    push(batch) {
      pings = 0
      if (batch.relay === undefined || writer === 'events')
        return takeOver() + batch.map(render).join('')
      writer = 'relay'
      follow(batch)
      return sink.relay(readRelay(batch.relay))
    },
    open: () => pingFrame,
    heartbeat() {
      pings++
      const touch = pings % pingsPerTouch === 0 ? frames.touch() : ''
      return touch === '' ? pingFrame : touch
    },
    fail: (error) => (isOver ? '' : takeOver() + blocks.cut() + closeFailed(error)),
    result() {
      if (failure !== null) throw failure
      return fold.message()
    },
  }
}

/** An upstream of the same protocol tells its failure in its own words; clients look for them. */
function errorBody(error: AppError): object {
  const told = asRecord(parseJson(error.relay?.body ?? ''))
  if (told['type'] !== 'error' || !isRecord(told['error'])) return renderMessagesError(error)
  return { type: 'error', error: told['error'] }
}

/** What an upstream does not count is estimated: it ended early, or never counts. */
function usageOf(
  { usage }: Finish,
  known: { inputTokens: number; written: string; webSearches: number },
): MessageUsage {
  if (usage !== null) return renderUsage(usage, known.webSearches)
  const outputTokens = estimateTextTokens(known.written)
  return estimatedUsage({ inputTokens: known.inputTokens, outputTokens }, known.webSearches)
}
