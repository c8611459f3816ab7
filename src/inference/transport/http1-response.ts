import type { Chunk } from '#inference/transport.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { type BodyReader, createBodyReader } from './http1-body.ts'
import { createHeadReader, type HeadReader, type ResponseHead } from './http1-head.ts'

export type ResponseParser = {
  /**
   * Takes the bytes of one read and gives the body bytes among them as one chunk, or null when
   * there are none. The read now belongs to the parser, which may rearrange it in place.
   */
  push(bytes: Buffer): Chunk | null
  /** What is wrong with the answer (`upstream_invalid_answer`); it then ends with this read. */
  readonly failure: AppError | null
  /** The head of the answer, once it has been read and found to be sound. */
  readonly head: ResponseHead | null
  /** Whether the whole body was read. */
  readonly complete: boolean
  /** Whether an orderly end of the connection would be the end of the body. */
  readonly endsWithConnection: boolean
  /** Whether the connection may carry another request. */
  readonly reusable: boolean
}

/** Reads one HTTP/1.1 answer from bytes that may be cut anywhere; without network or time. */
export function createResponseParser(limits: { headerBytesMax: number }): ResponseParser {
  return new Http1ResponseParser(limits)
}

class Http1ResponseParser implements ResponseParser {
  readonly #limits: { headerBytesMax: number }
  readonly #headReader: HeadReader
  #body: BodyReader | null = null
  #headFailure: AppError | null = null

  constructor(limits: { headerBytesMax: number }) {
    this.#limits = limits
    this.#headReader = createHeadReader(limits)
  }

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

  get failure(): AppError | null {
    return this.#body === null ? this.#headFailure : this.#body.failure
  }

  get head(): ResponseHead | null {
    return this.#body === null ? null : this.#headReader.head
  }

  get complete(): boolean {
    return this.#body?.complete ?? false
  }

  get endsWithConnection(): boolean {
    return this.#body?.endsWithConnection ?? false
  }

  get reusable(): boolean {
    return (
      this.complete && this.#body?.surplus === false && this.head !== null && keepsAlive(this.head)
    )
  }
}

function keepsAlive(head: ResponseHead): boolean {
  const options = (head.headers.get('connection') ?? '').toLowerCase().split(',')
  return head.minorVersion === 1 && !options.some((option) => option.trim() === 'close')
}
