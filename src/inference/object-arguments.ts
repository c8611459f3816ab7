import { AppError } from '#lib/errors.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { PullIterator, pull, type Subscriber } from '#lib/pull-iterator.ts'
import type { EventBatch, GenerationEvent } from './events.ts'
import type { EventBatches, Generate } from './inference.ts'

/**
 * Does what `objectArguments` of `GenerationJob` does, for a loop of several generations: its own calls may have
 * any arguments, those of the client may not.
 */
export function withObjectArguments(generate: Generate): Generate {
  return (job) => new CheckedArguments(generate(job))
}

/** A call whose arguments are not an object: the position of its end in the batch. */
export type ArgumentFault = { readonly at: number; readonly error: AppError }

/** Reads the calls of a generation. */
export class ArgumentCheck {
  /** The open call: its tool and its arguments so far. */
  #name: string | null = null
  #text = ''

  /** The first fault of the next batch. */
  find(batch: EventBatch): ArgumentFault | null {
    for (let at = 0; at < batch.length; at++) {
      const error = this.#read(batch[at])
      if (error !== null) return { at, error }
    }
    return null
  }

  #read(event: GenerationEvent | undefined): AppError | null {
    if (event?.type === 'tool-call-start') {
      // Custom tools receive plain text.
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

export function beginsCall(batch: EventBatch): boolean {
  return batch.some(({ type }) => type === 'tool-call-start')
}

class CheckedArguments extends PullIterator<EventBatch> implements Subscriber<EventBatch> {
  readonly #batches: EventBatches
  readonly #check = new ArgumentCheck()
  #hasOutput = false
  #isClosed = false

  constructor(batches: EventBatches) {
    super()
    this.#batches = batches
  }

  protected onPull() {
    if (this.#isClosed) this.emitEnd(null)
    else pull(this.#batches, this)
  }

  onNext(batch: EventBatch) {
    const fault = this.#check.find(batch)
    if (fault === null) {
      this.#hasOutput = true
      this.emit(batch)
    } else {
      void this.#failAt(batch, fault)
    }
  }

  onError(error: unknown) {
    this.#isClosed = true
    this.emitEnd({ error })
  }

  onComplete() {
    this.#isClosed = true
    this.emitEnd(null)
  }

  async return(): Promise<IteratorResult<EventBatch, undefined>> {
    await this.#batches.return()
    return { done: true, value: undefined }
  }

  /** Ends the upstream request before the error is emitted: the reader may be slow. */
  async #failAt(batch: EventBatch, { at, error }: ArgumentFault): Promise<void> {
    this.#isClosed = true
    await this.#batches.return().catch(() => {})
    if (this.#hasOutput) this.emit([...batch.slice(0, at + 1), { type: 'error', error }])
    else this.emitEnd({ error })
  }
}

function brokenCall(name: string): AppError {
  return new AppError(
    'upstream_invalid_answer',
    `The model called the tool ${name} with arguments that are not a JSON object.`,
  )
}
