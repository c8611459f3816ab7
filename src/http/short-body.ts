import { Deadlines, type Expiring } from '#lib/deadlines.ts'
import { bodyTimeout, lostBody } from './long-body.ts'

let deadlines = new Deadlines(0)

/** The limit is that of the configuration, which seldom changes. */
function deadlinesOf(limitMs: number): Deadlines {
  if (deadlines.limitMs !== limitMs) deadlines = new Deadlines(limitMs)
  return deadlines
}

/** A body that is read at once. Nearly every request has one, so that it costs one promise and no timer. */
export class ShortBody<T> implements Expiring {
  /** What `finish` makes of the bytes. Rejects with `request_timeout` past the limit. */
  readonly value: Promise<T>
  readonly #resolvers: PromiseWithResolvers<T>
  readonly #finish: (received: Uint8Array) => T | Promise<T>
  readonly #deadlines: Deadlines

  constructor(request: Request, limitMs: number, finish: (received: Uint8Array) => T | Promise<T>) {
    this.#resolvers = Promise.withResolvers()
    this.value = this.#resolvers.promise
    this.#finish = finish
    this.#deadlines = deadlinesOf(limitMs)
    this.#deadlines.add(this)
    request.bytes().then(
      (received) => this.#received(received),
      (cause: unknown) => this.#fail(lostBody(request, cause)),
    )
  }

  expire() {
    this.#resolvers.reject(bodyTimeout())
  }

  #received(bytes: Uint8Array) {
    this.#deadlines.remove(this)
    try {
      this.#resolvers.resolve(this.#finish(bytes))
    } catch (error) {
      this.#resolvers.reject(error)
    }
  }

  #fail(error: unknown) {
    this.#deadlines.remove(this)
    this.#resolvers.reject(error)
  }
}
