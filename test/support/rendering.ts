import { EventStreamParser } from '#inference/event-stream.ts'
import type { GenerationEvent } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import { createToolNames } from '#inference/tools.ts'
import { chunkOf } from '#inference/transport.ts'
import { ChatDecoder } from '#inference/upstreams/chat-completions/decode.ts'
import { MessagesDecoder } from '#inference/upstreams/messages/decode.ts'
import { createDecoder } from '#inference/upstreams/responses/decode.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { isTerminal } from '#responses/response.ts'
import { doneFrame } from '#surfaces/responses/frames.ts'
import { noHistory } from '#surfaces/responses/history.ts'
import { parseCreateResponse } from '#surfaces/responses/parse.ts'
import { ResponseRenderer } from '#surfaces/responses/render.ts'
import { makeRequest } from './generation.ts'
import { openSeal, testSeals } from './sealing.ts'

const { echo } = parseCreateResponse(
  { model: 'm', input: 'x' },
  {
    limits: { inputCharsMax: 100, inputItemsMax: 10, toolsMax: 10 },
    history: noHistory,
    seals: testSeals,
  },
)
const toolNames = createToolNames(makeRequest())
const limits = { eventBytesMax: 1_048_576, toolArgumentCharsMax: 1_048_576 }

/** A renderer for a plain request. */
function openRenderer(): ResponseRenderer {
  return new ResponseRenderer({
    id: 'resp_test',
    createdAt: new Date(0),
    echo,
    includeSealed: true,
    includeSearchResults: ['file_search_call'],
    reasoningSeal: openSeal,
    stream: true,
    framesBefore: 0,
    now: () => new Date(0),
  })
}

/**
 * The stream of upstream bytes that arrive in these reads: parser, decoder and renderer in memory,
 * so that thousands of splits can be tested.
 */
export function renderReads(protocol: DecodedProtocol, reads: readonly Uint8Array[]): string {
  return renderDecoded(decodeReads(protocol, reads))
}

/** The same for events: the stream of a response. */
export function renderDecoded({ batches, failure }: Decoded): string {
  const renderer = openRenderer()
  let wire = batches.map((batch) => renderer.push(batch)).join('')
  if (failure !== null) wire += `thrown: ${failure.kind}`
  return wire.endsWith('\n\n') && isTerminal(renderer.result().status) ? wire + doneFrame : wire
}

export type DecodedProtocol = 'chat-completions' | 'responses' | 'messages'

/** The events of each read, and the failure that ended them early. */
export type Decoded = { batches: GenerationEvent[][]; failure: AppError | null }

export function decodeReads(protocol: DecodedProtocol, reads: readonly Uint8Array[]): Decoded {
  const parser = new EventStreamParser(limits)
  const decoder = openDecoder(protocol)
  const batches: GenerationEvent[][] = []
  const take = (decode: (out: GenerationEvent[]) => void) => {
    const out: GenerationEvent[] = []
    try {
      decode(out)
    } finally {
      if (out.length > 0) batches.push(out)
    }
  }
  try {
    for (const bytes of reads) {
      take((out) => {
        for (const message of parser.push(chunkOf(bytes))) decoder.push(message, out)
      })
    }
    take((out) => {
      const last = parser.end()
      if (last !== null) decoder.push(last, out)
      decoder.end(out)
    })
    return { batches, failure: null }
  } catch (error) {
    return { batches, failure: toAppError(error) }
  }
}

function openDecoder(protocol: DecodedProtocol): Decoder {
  if (protocol === 'chat-completions') {
    return new ChatDecoder({
      toolNames,
      thinkTags: false,
      logprobs: true,
      takenCallIds: new Set(),
      ...limits,
    })
  }
  if (protocol === 'messages') {
    const sealedBy = 'upstream/m'
    return new MessagesDecoder({
      toolNames,
      sealedBy,
      takenCallIds: new Set(),
      relays: false,
      ...limits,
    })
  }
  return createDecoder({
    logprobs: true,
    sealedBy: 'upstream/m',
    mayCall: () => true,
    mintCallId: () => newId('call_'),
    ...limits,
  })
}
