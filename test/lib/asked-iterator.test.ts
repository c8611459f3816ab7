import { expect, test } from 'bun:test'
import { AskedIterator, ask, type Taker } from '#lib/asked-iterator.ts'

/** Counts up to `last`, and then ends or fails. */
class Counter extends AskedIterator<number> {
  #count = 0
  readonly #last: number
  readonly #failure: Error | null

  constructor(last: number, failure: Error | null = null) {
    super()
    this.#last = last
    this.#failure = failure
  }

  protected asked() {
    if (this.#count < this.#last) queueMicrotask(() => this.give(++this.#count))
    else this.giveEnd(this.#failure === null ? null : { error: this.#failure })
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

/** What whoever asks by calls is told. */
function toldBy(items: AsyncIterator<number>): Promise<unknown[]> {
  const told: unknown[] = []
  return new Promise((resolve) => {
    const taker: Taker<number> = {
      take(item) {
        told.push(item)
        ask(items, taker)
      },
      end: (failure) => resolve([...told, failure === null ? 'end' : failure.error]),
    }
    ask(items, taker)
  })
}

const failure = new Error('broken')

test('it is read like any iterator', async () => {
  expect(await Array.fromAsync(new Counter(3))).toEqual([1, 2, 3])
  expect(await Array.fromAsync(new Counter(0))).toEqual([])
})

test('a failure is thrown after what came before it', async () => {
  const counter = new Counter(1, failure)
  expect(await counter.next()).toEqual({ done: false, value: 1 })
  expect(await counter.next().catch((error: unknown) => error)).toBe(failure)
})

test('who leaves the loop ends it', async () => {
  const counter = new Counter(10)
  for await (const count of counter) if (count === 2) break
  expect((await counter.next()).done).toBe(true)
})

test('whoever asks is told the same, whatever kind of iterator it is', async () => {
  for (const items of [new Counter(3), countUp(3)]) {
    expect(await toldBy(items)).toEqual([1, 2, 3, 'end'])
  }
  for (const items of [new Counter(1, failure), countUp(1, failure)]) {
    expect(await toldBy(items)).toEqual([1, failure])
  }
})
