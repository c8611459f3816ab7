import { renderMessagesError } from '#http/error-envelope.ts'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import { estimateTextTokens } from '#inference/token-estimate.ts'
import { assert } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import type { ReasoningSeal, TextSeal } from '#sealing/seals.ts'
import { BlockList, type BlockTally, silentSink } from './blocks.ts'
import { MessageFold } from './fold.ts'
import { MessageSink, pingFrame } from './frames.ts'
import {
  emptyMessage,
  estimatedUsage,
  type Finish,
  type MessageObject,
  renderEnd,
  renderUsage,
  type ThinkingDisplay,
} from './message.ts'
import { RelayRewriter } from './relayed-frames.ts'

/** Renders events as the frames of one message, or as the object that they add up to. */
export type MessageRenderer = {
  push(batch: EventBatch): string
  /** The first frame of a stream that starts before its first event. */
  open(): string
  heartbeat(): string
  /** Ends the stream with an error that is not an event. */
  fail(error: AppError): string
  /** The message without streaming; throws if a stream would end with an error. */
  result(): MessageObject
}

export type MessageRendererOptions = {
  id: string
  /** The name that the client used. */
  model: string
  /** An estimate until the upstream reports the count. */
  inputTokens: number
  reasoningSeal: ReasoningSeal
  searchSeal: TextSeal
  thinkingDisplay: ThinkingDisplay
  /** Whether to write frames, or only the final object. */
  stream: boolean
}

/** SDKs hide pings, so after this many a heartbeat is an empty delta of the open block. */
const pingsPerEmptyDelta = 4

export function createMessageRenderer(options: MessageRendererOptions): MessageRenderer {
  return new Rendering(options)
}

/** One object for the state of every event: each further one costs a cache miss per idle stream. */
class Rendering implements MessageRenderer {
  readonly #sink: MessageSink
  readonly #blocks: BlockList
  readonly #relay: RelayRewriter
  /** Who writes: `relay` until a batch arrives without frames, `events` from then on. */
  #writer: 'none' | 'relay' | 'events' = 'none'
  #written = ''
  #pings = 0
  #hasEnded = false
  #failure: AppError | null = null
  readonly #tally: BlockTally = {
    toolUses: 0,
    webSearches: 0,
    hasRefusal: false,
    omitted: new Set(),
  }
  readonly #options: MessageRendererOptions
  readonly #fold: MessageFold | null

  constructor(options: MessageRendererOptions) {
    const { id, model, reasoningSeal, searchSeal, thinkingDisplay, stream } = options
    this.#options = options
    this.#fold = stream ? null : new MessageFold({ id, model })
    this.#sink = new MessageSink(this.#fold)
    this.#relay = new RelayRewriter(options)
    this.#blocks = new BlockList({
      reasoningSeal,
      searchSeal,
      thinkingDisplay,
      tally: this.#tally,
    })
  }

  push(batch: EventBatch): string {
    this.#pings = 0
    if (batch.relay === undefined || this.#writer === 'events') return this.#renderBatch(batch)
    this.#writer = 'relay'
    this.#follow(batch)
    return this.#sink.relay(this.#relay.rewrite(batch.relay))
  }

  open(): string {
    return pingFrame
  }

  heartbeat(): string {
    this.#pings++
    const delta = this.#pings % pingsPerEmptyDelta === 0 ? this.#sink.emptyDelta() : ''
    return delta === '' ? pingFrame : delta
  }

  fail(error: AppError): string {
    if (this.#hasEnded) return ''
    return this.#takeOver() + this.#blocks.cut(this.#sink) + this.#closeFailed(error)
  }

  result(): MessageObject {
    if (this.#failure !== null) throw this.#failure
    assert(this.#fold !== null, 'the message was streamed')
    return this.#fold.message()
  }

  #renderBatch(batch: EventBatch): string {
    let frames = this.#takeOver()
    for (const event of batch) frames += this.#render(event)
    return frames
  }

  #render(event: GenerationEvent): string {
    switch (event.type) {
      case 'generation-start':
        return this.#begin()
      case 'finish':
        return this.#close(event)
      case 'error':
        return this.#closeFailed(event.error)
      default:
        if ('text' in event) this.#written += event.text
        return this.#blocks.push(this.#sink, event)
    }
  }

  /** Updates the state for events whose frames are relayed. */
  #follow(batch: EventBatch) {
    for (const event of batch) {
      if ('block' in event) {
        if ('text' in event) this.#written += event.text
        this.#blocks.push(silentSink, event)
      }
      if (event.type === 'finish') this.#hasEnded = true
    }
  }

  /** Ends a relayed block that has no events, since it cannot be continued. */
  #takeOver(): string {
    const continuesBlock = this.#writer !== 'relay' || this.#blocks.takeOver(this.#sink.isOpen())
    this.#writer = 'events'
    return continuesBlock ? '' : this.#sink.stop()
  }

  #begin(): string {
    const { id, model, inputTokens } = this.#options
    const usage = estimatedUsage({ inputTokens, outputTokens: 0 })
    return this.#sink.begin(emptyMessage({ id, model, usage }))
  }

  #close(event: Finish): string {
    this.#hasEnded = true
    const end = renderEnd(event, this.#tally)
    if (end instanceof AppError) return this.#closeFailed(end)
    const { inputTokens } = this.#options
    const { webSearches, omitted } = this.#tally
    const usage =
      event.usage === null
        ? estimatedUsage(
            { inputTokens, outputTokens: estimateTextTokens(this.#written) },
            webSearches,
          )
        : renderUsage(event.usage, webSearches)
    return this.#sink.end(
      end,
      usage,
      omitted.size === 0 ? {} : { warning: omittedWarning(omitted) },
    )
  }

  #closeFailed(error: AppError): string {
    this.#hasEnded = true
    this.#failure = error
    return this.#sink.fail(errorBody(error))
  }
}

/** The code of the warning that a message lacks output. */
export const omittedCode = 'output_omitted'

function omittedWarning(types: ReadonlySet<string>): { code: string; message: string } {
  const message = `The response has output that messages have no blocks for: ${[...types].join(', ')}.`
  return { code: omittedCode, message }
}

/** An error of an upstream of the same protocol is relayed, since clients check its message. */
function errorBody(error: AppError): object {
  const body = asRecord(parseJson(error.relay?.body ?? ''))
  if (body['type'] !== 'error' || !isRecord(body['error'])) return renderMessagesError(error)
  return { type: 'error', error: body['error'] }
}
