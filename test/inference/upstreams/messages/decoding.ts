import { EventStreamParser } from '#inference/event-stream.ts'
import { type GenerationEvent, type RelayFrame, textOfFrame } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import { chunkOf } from '#inference/transport.ts'
import { MessagesDecoder } from '#inference/upstreams/messages/decode.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import { encode, sseOf } from '#test/inference/upstreams/responses/decoding.ts'
import { createGrammar } from '#test/support/grammar.ts'

export type Decoded = {
  events: GenerationEvent[]
  frames: RelayFrame[]
  error: AppError | null
}

type Options = Partial<Pick<GenerationRequest, 'tools' | 'toolChoice'>> & {
  relays?: boolean
  toolArgumentCharsMax?: number
}

export const sealedBy = 'upstream/m'

function openDecoder(options: Options = {}): Decoder {
  const { tools = [], toolChoice = { type: 'auto' } } = options
  return new MessagesDecoder({
    toolNames: createToolNames({ tools, toolChoice }),
    sealedBy,
    relays: options.relays ?? true,
    takenCallIds: new Set(),
    toolArgumentCharsMax: options.toolArgumentCharsMax ?? 1_000_000,
  })
}

/** Decodes a stream that arrives in these reads, and checks it against the grammar. */
export function decodeReads(reads: readonly Uint8Array[], options: Options = {}): Decoded {
  const parser = new EventStreamParser({ eventBytesMax: 16_777_216 })
  const decoder = openDecoder(options)
  return collect(decoder, (events) => {
    for (const bytes of reads) {
      for (const message of parser.push(chunkOf(bytes))) decoder.push(message, events)
    }
    const last = parser.end()
    if (last !== null) decoder.push(last, events)
    decoder.end(events)
  })
}

/** Decodes a response that is not streamed. */
export function decodeWhole(body: unknown, options: Options = {}): Decoded {
  const decoder = openDecoder(options)
  return collect(decoder, (events) => {
    decoder.pushBody(JSON.stringify(body), events)
    decoder.end(events)
  })
}

/** The events and frames that a stream of these payloads becomes. */
export function decode(payloads: readonly unknown[], options: Options = {}): Decoded {
  return decodeReads([encode(sseOf(payloads))], options)
}

function collect(decoder: Decoder, run: (events: GenerationEvent[]) => void): Decoded {
  const events: GenerationEvent[] = []
  let error: AppError | null = null
  try {
    run(events)
  } catch (thrown) {
    error = toAppError(thrown)
  }
  const grammar = createGrammar()
  for (const event of events) grammar.check(event)
  if (error === null) grammar.end()
  return { events, frames: [...(decoder.takeRelay?.()?.frames ?? [])], error }
}

/** Payloads of a stream in the vendor's order, unless a test changes it. */
export const messageStart = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 1 },
  },
}
export const blockStart = (block: unknown, index: number | null = 0) => ({
  type: 'content_block_start',
  ...place(index),
  content_block: block,
})
export const blockDelta = (delta: unknown, index: number | null = 0) => ({
  type: 'content_block_delta',
  ...place(index),
  delta,
})
export const blockStop = (index: number | null = 0) => ({
  type: 'content_block_stop',
  ...place(index),
})
export const emptyText = { type: 'text', text: '' }
export const emptyThinking = { type: 'thinking', thinking: '', signature: '' }
export const text = (given: string, index?: number | null) =>
  blockDelta({ type: 'text_delta', text: given }, index)
export const thinkingDelta = (given: string, index?: number | null) =>
  blockDelta({ type: 'thinking_delta', thinking: given }, index)
export const signature = (given: string, index?: number | null) =>
  blockDelta({ type: 'signature_delta', signature: given }, index)
export const inputDelta = (given: string, index?: number | null) =>
  blockDelta({ type: 'input_json_delta', partial_json: given }, index)
export const toolUse = (id: string, name: string) => ({ type: 'tool_use', id, name, input: {} })
export const messageDelta = (reason = 'end_turn', more: object = {}) => ({
  type: 'message_delta',
  delta: { stop_reason: reason, stop_sequence: null, ...more },
  usage: { output_tokens: 5 },
})
export const messageStop = { type: 'message_stop' }
export const textBlock = (given: string, index = 0) => [
  blockStart(emptyText, index),
  text(given, index),
  blockStop(index),
]
export const hello = [messageStart, ...textBlock('Hello'), messageDelta(), messageStop]

function place(index: number | null): { index?: number } {
  return index === null ? {} : { index }
}

/** Frames as a client receives them, with the names that the surface sets. */
export function wireOf(frames: readonly RelayFrame[]): string {
  return frames
    .map((frame) => {
      const { payload } = frame
      const message = { ...asRecord(payload['message']), id: 'msg_ours', model: 'ours' }
      const isStart = payload['type'] === 'message_start'
      const written = isStart ? JSON.stringify({ ...payload, message }) : textOfFrame(frame)
      return `event: ${payload['type']}\ndata: ${written}\n\n`
    })
    .join('')
}
