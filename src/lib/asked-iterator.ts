import { assert } from './assert.ts'

/** Why there is no further item; null where the end is in order. */
export type Failure = { readonly error: unknown } | null

/** Who has asked for an item. One of the two is called for each, and neither may throw. */
export type Taker<T> = {
  take(item: T): void
  /** There is no further item. */
  end(failure: Failure): void
}

/**
 * An async iterator that also answers by a call. A promise that is waited for is some ten objects,
 * and with hundreds of slow streams all of them are out of the processor's cache when the next event
 * comes; a call needs none. What every event passes is asked in this way, all else may iterate.
 */
export abstract class AskedIterator<T> implements AsyncIterableIterator<T, undefined> {
  #taker: Taker<T> | null = null

  /** Asks for the next item, once the one before was given. An end may be told at once. */
  ask(taker: Taker<T>) {
    assert(this.#taker === null, 'items are asked for one at a time')
    this.#taker = taker
    this.asked()
  }

  /** Nothing more is wanted. */
  abstract return(): Promise<IteratorResult<T, undefined>>

  next(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve, reject) => {
      this.ask({
        take: (value) => resolve({ done: false, value }),
        end(failure) {
          if (failure === null) resolve({ done: true, value: undefined })
          else reject(failure.error)
        },
      })
    })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Somebody waits now: `give` or `giveEnd` follows. An item is given after this has returned. */
  protected abstract asked(): void

  protected get isAsked(): boolean {
    return this.#taker !== null
  }

  /** Answers whoever waits, who may ask again meanwhile. */
  protected give(item: T) {
    const taker = this.#taker
    this.#taker = null
    taker?.take(item)
  }

  protected giveEnd(failure: Failure) {
    const taker = this.#taker
    this.#taker = null
    taker?.end(failure)
  }
}

/** Asks any iterator for its next item. */
export function ask<T>(items: AsyncIterator<T>, taker: Taker<T>): void {
  if (items instanceof AskedIterator) items.ask(taker)
  else {
    items.next().then(
      (next) => (next.done ? taker.end(null) : taker.take(next.value)),
      (error: unknown) => taker.end({ error }),
    )
  }
}
