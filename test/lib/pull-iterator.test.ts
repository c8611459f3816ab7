import { expect, test } from 'bun:test'
import { PullIterator, pull, type Subscriber } from '#lib/pull-iterator.ts'

/** Counts up to `last`, then completes or fails. */
class Counter extends PullIterator<number> {
  #count = 0
  readonly #last: number
  readonly #failure: Error | null

  constructor(last: number, failure: Error | null = null) {
    super()
    this.#last = last
    this.#failure = failure
  }

  protected onPull() {
    if (this.#count < this.#last) queueMicrotask(() => this.emit(++this.#count))
    else this.emitEnd(this.#failure === null ? null : { error: this.#failure })
  }

  return(): Promise<IteratorResult<number, undefined>> {
    this.#count = this.#last
    return Promise.resolve({ done: true, value: undefined })
  }
}

async function* countUp(last: number, failure: Error | null = null): AsyncGenerator<number> {
  for (let count = 1; count <= last; count++) yield count
  if (failure !== null) throw failure
}

/** Everything a subscriber receives, with 'end' or the error last. */
function collectByCallback(items: AsyncIterator<number>): Promise<unknown[]> {
  const received: unknown[] = []
  return new Promise((resolve) => {
    const subscriber: Subscriber<number> = {
      onNext(item) {
        received.push(item)
        pull(items, subscriber)
      },
      onError: (error) => resolve([...received, error]),
      onComplete: () => resolve([...received, 'end']),
    }
    pull(items, subscriber)
  })
}

const failure = new Error('broken')

test('a pull iterator works as an async iterator', async () => {
  expect(await Array.fromAsync(new Counter(3))).toEqual([1, 2, 3])
  expect(await Array.fromAsync(new Counter(0))).toEqual([])
})

test('a failure is thrown after the items before it', async () => {
  const counter = new Counter(1, failure)
  expect(await counter.next()).toEqual({ done: false, value: 1 })
  expect(await counter.next().catch((error: unknown) => error)).toBe(failure)
})

test('breaking out of the loop cancels the iteration', async () => {
  const counter = new Counter(10)
  for await (const count of counter) if (count === 2) break
  expect((await counter.next()).done).toBe(true)
})

test('a subscriber receives the same items from a pull iterator and from a generator', async () => {
  for (const items of [new Counter(3), countUp(3)]) {
    expect(await collectByCallback(items)).toEqual([1, 2, 3, 'end'])
  }
  for (const items of [new Counter(1, failure), countUp(1, failure)]) {
    expect(await collectByCallback(items)).toEqual([1, failure])
  }
})
