import { Deadlines, type Expiring } from '#lib/deadlines.ts'
import { idleTimeoutS } from './long-body.ts'

type Server = Pick<Bun.Server<unknown>, 'timeout'>

/** Well before an idle connection would be closed. */
const shortMs = 10_000
const shortRequests = new Deadlines(shortMs)

/**
 * A request whose handler runs. Receiving a body and generating a response may take longer than idle
 * connections are kept; their own deadlines apply.
 */
export class RunningRequest implements Expiring {
  readonly #request: Request
  readonly #server: Server
  #isLong = false

  constructor(request: Request, server: Server) {
    this.#request = request
    this.#server = server
    shortRequests.add(this)
  }

  expire() {
    this.#isLong = true
    this.#server.timeout(this.#request, 0)
  }

  /** `timeoutS`: how long its connection may be idle from now on. */
  end(timeoutS: number) {
    shortRequests.remove(this)
    if (this.#isLong || timeoutS !== idleTimeoutS) this.#server.timeout(this.#request, timeoutS)
  }
}
