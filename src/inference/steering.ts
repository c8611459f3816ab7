import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { PullIterator, pull, type Subscriber } from '#lib/pull-iterator.ts'
import { estimateInput, estimateUsage } from './call-estimate.ts'
import { type EventBatch, endOfBlock, type GenerationEvent } from './events.ts'
import type { EventBatches } from './inference.ts'
import type { GenerationRequest, ToolName } from './request.ts'
import { isSameTool } from './tools.ts'

/** Interrupts one generation on request, so that its client can go on with another instruction. */
export class Steering {
  #batches: SteerableBatches | null = null
  #isInterrupted = false

  /** Ends the generation at the next point at which nothing that it began is lost. */
  interrupt() {
    this.#isInterrupted = true
    this.#batches?.interrupt()
  }

  /** Runs a generation that can be interrupted; called at most once. */
  run(
    generate: (signal: AbortSignal) => EventBatches,
    { signal, request }: { signal: AbortSignal; request: GenerationRequest },
  ): EventBatches {
    this.#batches = new SteerableBatches(generate, signal, request)
    if (this.#isInterrupted) this.#batches.interrupt()
    return this.#batches
  }
}

/**
 * Passes batches on, and ends early when interrupted: text and reasoning are cut where they are. A
 * running hosted tool ends first. After a call of a client's tool the generation ends by itself, since
 * its client has to act before the conversation can go on, unless the tool is asynchronous.
 */
class SteerableBatches extends PullIterator<EventBatch> implements Subscriber<EventBatch> {
  readonly #source: EventBatches
  readonly #request: GenerationRequest
  readonly #controller: AbortController
  readonly #release: () => void
  #last: GenerationEvent | undefined
  #outputChars = 0
  #awaitsClient = false
  #isInterrupted = false
  #isClosed = false

  constructor(
    generate: (signal: AbortSignal) => EventBatches,
    signal: AbortSignal,
    request: GenerationRequest,
  ) {
    super()
    const { controller, release } = followSignal(signal)
    this.#controller = controller
    this.#release = release
    this.#request = request
    this.#source = generate(controller.signal)
  }

  interrupt() {
    this.#isInterrupted = true
    if (this.isPending && this.#canCut()) this.#cut()
  }

  protected onPull() {
    if (this.#isClosed) this.emitEnd(null)
    else if (this.#isInterrupted && this.#canCut()) this.#cut()
    else pull(this.#source, this)
  }

  onNext(batch: EventBatch) {
    if (this.#isClosed) return
    for (const event of batch) {
      if ('text' in event) this.#outputChars += event.text.length
      if (event.type === 'tool-call-start') this.#awaitsClient ||= !this.#isAsync(event.call)
    }
    this.#last = batch.at(-1) ?? this.#last
    this.emit(batch)
  }

  onError(error: unknown) {
    if (this.#isClosed) return
    this.#close()
    this.emitEnd({ error })
  }

  onComplete() {
    if (this.#isClosed) return
    this.#close()
    this.emitEnd(null)
  }

  return(): Promise<IteratorResult<EventBatch, undefined>> {
    this.#stop()
    this.emitEnd(null)
    return Promise.resolve({ done: true, value: undefined })
  }

  #canCut(): boolean {
    if (this.#awaitsClient || this.#hasEnded()) return false
    const { type = 'generation-start' } = this.#last ?? {}
    return !/^(hosted-tool|tool-call)-(?!end)/.test(type)
  }

  #isAsync(call: ToolName): boolean {
    return this.#request.tools.some((tool) => tool.async === true && isSameTool(tool, call))
  }

  #hasEnded(): boolean {
    return this.#last?.type === 'finish' || this.#last?.type === 'error'
  }

  #cut() {
    const last = this.#last
    this.#stop()
    const used = { firstEventMs: last === undefined ? null : 0, outputChars: this.#outputChars }
    const usage = estimateUsage(used, estimateInput(this.#request))
    this.emit([
      ...(last === undefined ? [{ type: 'generation-start' } as const] : endOfBlock(last)),
      { type: 'finish', reason: 'steered', rawReason: null, usage },
    ])
  }

  /** Cancels the source, whose later events are ignored. */
  #stop() {
    if (this.#isClosed) return
    this.#close()
    // A suspended generator does not notice the abort, and a busy one not the return.
    if (!this.#hasEnded()) {
      this.#controller.abort(new AppError('client_closed', 'The response was steered.'))
    }
    void this.#source.return().catch(() => {})
  }

  #close() {
    this.#isClosed = true
    this.#release()
  }
}
