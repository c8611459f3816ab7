import type { Failure, PullIterator } from '#lib/pull-iterator.ts'
import { EventStreamParser } from './event-stream.ts'
import type { GenerationEvent } from './events.ts'
import type { Decoder } from './http-generation.ts'
import type { Chunk } from './transport.ts'

/**
 * The body of a streamed response, and the decoder of its events. It is its own parser: a further object would
 * be cold in cache at every event.
 */
export class StreamedBody extends EventStreamParser {
  readonly chunks: PullIterator<Chunk>
  readonly decoder: Decoder

  constructor(chunks: PullIterator<Chunk>, decoder: Decoder, limits: { eventBytesMax: number }) {
    super(limits)
    this.chunks = chunks
    this.decoder = decoder
  }

  /** Decodes a chunk. Returns a failure instead of throwing: events decoded before it are emitted. */
  decode(chunk: Chunk, out: GenerationEvent[]): Failure {
    try {
      for (const event of this.push(chunk)) this.decoder.push(event, out)
      return null
    } catch (error) {
      return { error }
    }
  }

  /** Decodes what is left at the end of the body, as above. */
  decodeEnd(out: GenerationEvent[]): Failure {
    try {
      const last = this.end()
      if (last !== null) this.decoder.push(last, out)
      this.decoder.end(out)
      return null
    } catch (error) {
      return { error }
    }
  }
}
