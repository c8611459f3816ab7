import { expect } from 'bun:test'
import { EventStreamParser } from '#inference/event-stream.ts'
import type { GenerationEvent } from '#inference/events.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import { chunkOf } from '#inference/transport.ts'
import {
  ChatDecoder,
  type ChatDecoderOptions,
} from '#inference/upstreams/chat-completions/decode.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { createGrammar } from '#test/support/grammar.ts'
import { makeRequest } from './generation.ts'

export type Decoded = { events: GenerationEvent[]; error: AppError | null }

export type DecodingOptions = Partial<Omit<ChatDecoderOptions, 'toolNames'>> & {
  request?: Partial<Pick<GenerationRequest, 'tools' | 'toolChoice'>>
}

/** Decodes the bytes of a stream in these pieces, and checks the grammar. */
export function decodeBytes(pieces: Iterable<Uint8Array>, options: DecodingOptions = {}): Decoded {
  return decode(options, (push) => {
    const parser = new EventStreamParser({ eventBytesMax: 1_048_576 })
    for (const piece of pieces) for (const message of parser.push(chunkOf(piece))) push(message)
    const last = parser.end()
    if (last !== null) push(last)
  })
}

/** Decodes data payloads: JSON texts, or values to be serialised. Nothing is added at the end. */
export function decodePayloads(payloads: readonly unknown[], options?: DecodingOptions): Decoded {
  return decode(options ?? {}, (push) => {
    for (const payload of payloads) {
      push({ event: '', data: typeof payload === 'string' ? payload : JSON.stringify(payload) })
    }
  })
}

/** The event that ends the payloads, which must not fail. */
export function finishOf(payloads: readonly unknown[]) {
  const { events, error } = decodePayloads(payloads)
  expect(error).toBeNull()
  return events.find((event) => event.type === 'finish')
}

export function makeDecoder({ request, ...options }: DecodingOptions = {}): ChatDecoder {
  return new ChatDecoder({
    toolNames: createToolNames(makeRequest(request)),
    thinkTags: false,
    logprobs: false,
    takenCallIds: new Set(),
    toolArgumentCharsMax: 65_536,
    ...options,
  })
}

function decode(
  options: DecodingOptions,
  feed: (push: (message: { event: string; data: string }) => void) => void,
): Decoded {
  const decoder = makeDecoder(options)
  const grammar = createGrammar()
  const events: GenerationEvent[] = []
  let error: AppError | null = null
  try {
    feed((message) => decoder.push(message, events))
    decoder.end(events)
  } catch (thrown) {
    error = toAppError(thrown)
  }
  for (const event of events) grammar.check(event)
  if (error === null) grammar.end()
  return { events, error }
}

/** A chunk with one choice. */
export function chunk(delta: object, finishReason: string | null = null, more: object = {}) {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finishReason }],
    ...more,
  }
}

/** A delta with tool calls: `[index, id, name, arguments]` each; null omits a field. */
export function callDelta(
  ...calls: [index: number | null, id: string | null, name: string | null, text: unknown][]
) {
  return {
    tool_calls: calls.map(([index, id, name, text]) => ({
      ...(index === null ? {} : { index }),
      ...(id === null ? {} : { id }),
      type: 'function',
      function: {
        ...(name === null ? {} : { name }),
        ...(text === null ? {} : { arguments: text }),
      },
    })),
  }
}
