import type { Chunk } from '#inference/transport.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { type BodyReader, createBodyReader } from './http1-body.ts'
import { HeadReader, type ResponseHead } from './http1-head.ts'

/** Parses one HTTP/1.1 response from bytes that may be split anywhere. Pure: no network, no time. */
export class ResponseParser {
  readonly #limits: { headerBytesMax: number }
  readonly #headReader: HeadReader
  #body: BodyReader | null = null
  #headFailure: AppError | null = null

  constructor(limits: { headerBytesMax: number }) {
    this.#limits = limits
    this.#headReader = new HeadReader(limits)
  }

  /**
   * Parses the bytes of one read. Returns the body bytes among them as one chunk; null if there are
   * none. The bytes now belong to the parser, which may rearrange them in place.
   */
  push(bytes: Buffer): Chunk | null {
    if (this.#body !== null) return this.#body.push(bytes, 0)
    try {
      const bodyStart = this.#headReader.push(bytes, 0)
      const { head } = this.#headReader
      if (head === null) return null
      this.#body = createBodyReader(head, this.#limits)
      return this.#body.push(bytes, bodyStart)
    } catch (error) {
      this.#headFailure = toAppError(error)
      return null
    }
  }

  /** The reader of the body, once the head is complete; further bytes may be pushed to it directly. */
  get body(): BodyReader | null {
    return this.#body
  }

  /** Set when the response is invalid (`upstream_invalid_answer`); parsing ends with this read. */
  get failure(): AppError | null {
    return this.#body === null ? this.#headFailure : this.#body.failure
  }

  /** The head of the response, once it is complete and valid. */
  get head(): ResponseHead | null {
    return this.#body === null ? null : this.#headReader.head
  }

  /** Whether the body is complete. */
  get complete(): boolean {
    return this.#body?.complete ?? false
  }

  /** Whether the connection may carry another request. */
  get reusable(): boolean {
    if (!this.complete || this.#body?.surplus !== false || this.head === null) return false
    const options = (this.head.headers.get('connection') ?? '').toLowerCase().split(',')
    return this.head.minorVersion === 1 && !options.some((option) => option.trim() === 'close')
  }
}
