import { AppError } from '#lib/errors.ts'
import type { EventBatch } from './events.ts'

/** Counts the text of batches, and throws when there is more of it than may be. */
export class TextLimit {
  readonly #charsMax: number
  #charsLeft: number

  constructor(charsMax: number) {
    this.#charsMax = charsMax
    this.#charsLeft = charsMax
  }

  spend(batch: EventBatch) {
    for (const event of batch) if ('text' in event) this.#charsLeft -= event.text.length
    // Of what no event tells, the frames are all that there is to count.
    if (batch.length === 0)
      for (const { data } of batch.relay?.frames ?? []) this.#charsLeft -= data.length
    if (this.#charsLeft >= 0) return
    throw new AppError(
      'upstream_invalid_answer',
      `The upstream's answer is longer than ${this.#charsMax} characters, which is the limit.`,
    )
  }
}
