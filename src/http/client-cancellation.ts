import { Cancellation } from '#lib/cancellation.ts'
import { Deadlines, type Expiring } from '#lib/deadlines.ts'

/** A client that disconnects earlier is noticed this late at most. */
const followAfterMs = 50
const notFollowing = new Deadlines(followAfterMs)

/**
 * Aborts when the client of a request disconnects. The signal of the runtime and a listener cost more than
 * reading the body, so they are made for requests that take a while.
 */
export class ClientCancellation extends Cancellation implements Expiring {
  readonly #request: Request

  constructor(request: Request) {
    super()
    this.#request = request
    notFollowing.add(this)
  }

  expire() {
    this.follow(this.#request.signal)
  }

  override release() {
    notFollowing.remove(this)
    super.release()
  }
}
