import { renderMessagesError } from '#http/error-envelope.ts'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import { estimateTextTokens } from '#inference/tokens.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import { type BlockTally, silentSink, type ThinkingDisplay } from './blocks/block.ts'
import { BlockList } from './blocks/block-list.ts'
import { createMessageFold, type MessageFold } from './fold.ts'
import { FrameSink, pingFrame } from './frames.ts'
import { emptyMessage, type MessageObject, type MessageSink } from './message.ts'
import { RelayReader } from './relayed-frames.ts'
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

/** Its methods are bound, because whoever streams passes them on one by one. */
export function createMessageRenderer(options: MessageRendererOptions): MessageRenderer {
  const rendering = new Rendering(options)
  return {
    id: options.id,
    push: (batch) => rendering.push(batch),
    open: () => pingFrame,
    heartbeat: () => rendering.heartbeat(),
    fail: (error) => rendering.fail(error),
    result: () => rendering.result(),
  }
}

/** One object for what every event touches: each further one costs a stream that was idle a miss. */
class Rendering {
  readonly #sink: MessageSink
  readonly #blocks: BlockList
  readonly #relay: RelayReader
  /** Who writes: the upstream, until a batch comes without its frames, and from then on we alone. */
  #writer: 'none' | 'relay' | 'events' = 'none'
  #written = ''
  #pings = 0
  #isOver = false
  #failure: AppError | null = null
  readonly #tally: BlockTally = { toolUses: 0, webSearches: 0, hasRefusal: false }
  readonly #options: MessageRendererOptions
  readonly #frames = new FrameSink()
  readonly #fold: MessageFold

  constructor(options: MessageRendererOptions) {
    const { id, model, reasoningSeal, thinkingDisplay } = options
    this.#options = options
    this.#fold = createMessageFold({ id, model })
    this.#sink = options.stream ? this.#frames : this.#fold
    this.#relay = new RelayReader(options)
    this.#blocks = new BlockList({ reasoningSeal, thinkingDisplay, tally: this.#tally })
  }

  push(batch: EventBatch): string {
    this.#pings = 0
    if (batch.relay === undefined || this.#writer === 'events') return this.#tell(batch)
    this.#writer = 'relay'
    this.#follow(batch)
    return this.#sink.relay(this.#relay.read(batch.relay))
  }

  heartbeat(): string {
    this.#pings++
    const touch = this.#pings % pingsPerTouch === 0 ? this.#frames.touch() : ''
    return touch === '' ? pingFrame : touch
  }

  fail(error: AppError): string {
    if (this.#isOver) return ''
    return this.#takeOver() + this.#blocks.cut(this.#sink) + this.#closeFailed(error)
  }

  result(): MessageObject {
    if (this.#failure !== null) throw this.#failure
    return this.#fold.message()
  }

  #tell(batch: EventBatch): string {
    let told = this.#takeOver()
    for (const event of batch) told += this.#render(event)
    return told
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

  /** Keeps up with what the upstream says in its own words. */
  #follow(batch: EventBatch) {
    for (const event of batch) {
      if ('block' in event) {
        if ('text' in event) this.#written += event.text
        this.#blocks.push(silentSink, event)
      }
      if (event.type === 'finish') this.#isOver = true
    }
  }

  /** A block of the upstream that no event speaks of cannot go on without it. */
  #takeOver(): string {
    const goesOn = this.#writer !== 'relay' || this.#blocks.takeOver(this.#sink.isOpen())
    this.#writer = 'events'
    return goesOn ? '' : this.#sink.stop()
  }

  #begin(): string {
    const { id, model, inputTokens } = this.#options
    const usage = estimatedUsage({ inputTokens, outputTokens: 0 })
    return this.#sink.begin(emptyMessage({ id, model, usage }))
  }

  #close(event: Finish): string {
    this.#isOver = true
    const end = readEnd(event, this.#tally)
    if (end instanceof AppError) return this.#closeFailed(end)
    const { inputTokens } = this.#options
    const { webSearches } = this.#tally
    return this.#sink.end(end, usageOf(event, { inputTokens, written: this.#written, webSearches }))
  }

  #closeFailed(error: AppError): string {
    this.#isOver = true
    this.#failure = error
    return this.#sink.fail(errorBody(error))
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
