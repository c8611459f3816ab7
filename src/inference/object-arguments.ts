import { AppError } from '#lib/errors.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { PullIterator, pull, type Subscriber } from '#lib/pull-iterator.ts'
import type { EventBatch, GenerationEvent } from './events.ts'
import type { EventBatches, Generate } from './inference.ts'

/**
 * Generations for a protocol in which the arguments of a call are an object, and not the text that a
 * model wrote. Where a complete call has anything else, the generation fails: clients would make it a
 * call without arguments, which may do what nobody asked for.
 */
export function withObjectArguments(generate: Generate): Generate {
  return (job) => new CheckedBatches(generate(job))
}

type Fault = { readonly at: number; readonly error: AppError }

/** Every event of a stream passes here, so it is asked by calls. */
class CheckedBatches extends PullIterator<EventBatch> implements Subscriber<EventBatch> {
  readonly #batches: EventBatches
  #hasOutput = false
  #isOver = false
  /** Of the call that is open: the tool, and what was given to it so far. */
  #name: string | null = null
  #text = ''

  constructor(batches: EventBatches) {
    super()
    this.#batches = batches
  }

  protected onPull() {
    if (this.#isOver) this.emitEnd(null)
    else pull(this.#batches, this)
  }

  onNext(batch: EventBatch) {
    const fault = this.#findFault(batch)
    if (fault === null) {
      this.#hasOutput = true
      this.emit(batch)
    } else {
      void this.#break(batch, fault)
    }
  }

  onError(error: unknown) {
    this.#isOver = true
    this.emitEnd({ error })
  }

  onComplete() {
    this.#isOver = true
    this.emitEnd(null)
  }

  async return(): Promise<IteratorResult<EventBatch, undefined>> {
    await this.#batches.return()
    return { done: true, value: undefined }
  }

  /** The upstream is told to end before anybody may take their time with this. */
  async #break(batch: EventBatch, { at, error }: Fault): Promise<void> {
    this.#isOver = true
    await this.#batches.return().catch(() => {})
    if (this.#hasOutput) this.emit([...batch.slice(0, at + 1), { type: 'error', error }])
    else this.emitEnd({ error })
  }

  #findFault(batch: EventBatch): Fault | null {
    for (let at = 0; at < batch.length; at++) {
      const error = this.#read(batch[at])
      if (error !== null) return { at, error }
    }
    return null
  }

  #read(event: GenerationEvent | undefined): AppError | null {
    if (event?.type === 'tool-call-start') {
      // What a custom tool is given is text, whatever it is.
      this.#name = event.call.form === 'function' ? event.call.name : null
      this.#text = ''
    } else if (event?.type === 'tool-call-delta' && this.#name !== null) {
      this.#text += event.text
    } else if (event?.type === 'tool-call-end' && this.#name !== null && event.complete) {
      return isRecord(parseJson(this.#text)) ? null : brokenCall(this.#name)
    }
    return null
  }
}

function brokenCall(name: string): AppError {
  return new AppError(
    'upstream_invalid_answer',
    `The model called the tool ${name} with arguments that are no JSON object.`,
  )
}
