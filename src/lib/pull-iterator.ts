import { assert } from './assert.ts'

/** Why a sequence ended: the error it failed with, or null after its last item. */
export type Failure = { readonly error: unknown } | null

/** Receives the items of a `PullIterator`. Each `pull` is followed by exactly one of these calls. */
export type Subscriber<T> = {
  /** Must not throw. */
  onNext(item: T): void
  /** Must not throw. */
  onError(error: unknown): void
  /** There is no further item. Must not throw. */
  onComplete(): void
}

/**
 * A pull iterator with callbacks. Each awaited promise allocates about ten objects, which are cold in
 * cache by the next event of a slow stream; a callback allocates none. The code on the path of every
 * event pulls with callbacks, all other code iterates.
 */
export abstract class PullIterator<T> implements AsyncIterableIterator<T, undefined> {
  #subscriber: Subscriber<T> | null = null

  /** Requests the next item; only after the previous pull was served. May end synchronously. */
  pull(subscriber: Subscriber<T>) {
    assert(this.#subscriber === null, 'one pull at a time')
    this.#subscriber = subscriber
    this.onPull()
  }

  /** Cancels the iteration. */
  abstract return(): Promise<IteratorResult<T, undefined>>

  next(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve, reject) => {
      this.pull({
        onNext: (value) => resolve({ done: false, value }),
        onError: reject,
        onComplete: () => resolve({ done: true, value: undefined }),
      })
    })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** A subscriber is waiting: `emit` (asynchronously) or `emitEnd` must follow. */
  protected abstract onPull(): void

  protected get isPending(): boolean {
    return this.#subscriber !== null
  }

  /** Serves the pending pull. The subscriber may pull again inside this call. */
  protected emit(item: T) {
    const subscriber = this.#subscriber
    this.#subscriber = null
    subscriber?.onNext(item)
  }

  protected emitEnd(failure: Failure) {
    const subscriber = this.#subscriber
    this.#subscriber = null
    if (failure === null) subscriber?.onComplete()
    else subscriber?.onError(failure.error)
  }
}

/** Takes items until `take` returns false or there are no more, and makes a result of them. */
type Consumption<T, R> = {
  take(item: T): boolean
  result(): R
}

/**
 * The result of what was consumed. If `take` throws, the iteration ends with that error. Costs one promise,
 * however many items.
 */
export function consume<T, R>(items: AsyncIterator<T>, consumption: Consumption<T, R>): Promise<R> {
  return new Promise((resolve, reject) =>
    pull(items, new Consumer(items, consumption, { resolve, reject })),
  )
}

class Consumer<T, R> implements Subscriber<T> {
  readonly #items: AsyncIterator<T>
  readonly #consumption: Consumption<T, R>
  readonly #settle: { resolve(result: R): void; reject(error: unknown): void }

  constructor(
    items: AsyncIterator<T>,
    consumption: Consumption<T, R>,
    settle: { resolve(result: R): void; reject(error: unknown): void },
  ) {
    this.#items = items
    this.#consumption = consumption
    this.#settle = settle
  }

  onNext(item: T) {
    try {
      if (this.#consumption.take(item)) pull(this.#items, this)
      else this.onComplete()
    } catch (error) {
      void Promise.resolve(this.#items.return?.()).catch(() => {})
      this.onError(error)
    }
  }

  onComplete() {
    try {
      this.#settle.resolve(this.#consumption.result())
    } catch (error) {
      this.onError(error)
    }
  }

  onError(error: unknown) {
    this.#settle.reject(error)
  }
}

/** Pulls the next item of any async iterator, with callbacks. */
export function pull<T>(items: AsyncIterator<T>, subscriber: Subscriber<T>): void {
  if (items instanceof PullIterator) items.pull(subscriber)
  else {
    items.next().then(
      (next) => (next.done ? subscriber.onComplete() : subscriber.onNext(next.value)),
      (error: unknown) => subscriber.onError(error),
    )
  }
}
