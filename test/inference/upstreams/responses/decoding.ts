import { EventStreamParser } from '#inference/event-stream.ts'
import type { Citation, GenerationEvent, TokenLogprob } from '#inference/events.ts'
import type { Decoder } from '#inference/http-generation.ts'
import type { ToolName } from '#inference/request.ts'
import { chunkOf } from '#inference/transport.ts'
import { createDecoder } from '#inference/upstreams/responses/decode.ts'
import type { AppError } from '#lib/errors.ts'
import { toAppError } from '#lib/errors.ts'
import { createGrammar } from '#test/support/grammar.ts'

export type Decoded = { events: GenerationEvent[]; error: AppError | null }

type Options = {
  logprobs?: boolean
  toolArgumentCharsMax?: number
  mayCall?: (tool: ToolName) => boolean
}

/** A decoder whose minted call ids are call_minted_1, call_minted_2 …. */
export function openDecoder(options: Options = {}): Decoder {
  let minted = 0
  return createDecoder({
    logprobs: options.logprobs ?? false,
    toolArgumentCharsMax: options.toolArgumentCharsMax ?? 1_000_000,
    sealedBy: 'upstream/m',
    mayCall: options.mayCall ?? (() => true),
    mintCallId: () => `call_minted_${++minted}`,
  })
}

/** Decodes a stream that arrives in these reads, and checks it against the grammar. */
export function decodeReads(reads: readonly Uint8Array[], options: Options = {}): Decoded {
  const parser = new EventStreamParser({ eventBytesMax: 16_777_216 })
  const decoder = openDecoder(options)
  return collect((events) => {
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
  return collect((events) => {
    decoder.pushBody(JSON.stringify(body), events)
    decoder.end(events)
  })
}

/** The events that a stream of these payloads becomes. */
export function decode(payloads: readonly unknown[], options: Options = {}): Decoded {
  return decodeReads([encode(sseOf(payloads))], options)
}

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Payloads as a stream, each under its type; a string is a verbatim data line. */
export function sseOf(payloads: readonly unknown[]): string {
  return payloads
    .map((payload) =>
      typeof payload === 'string'
        ? `data: ${payload}\n\n`
        : `event: ${typeOf(payload)}\ndata: ${JSON.stringify(payload)}\n\n`,
    )
    .join('')
}

function typeOf(payload: unknown): string {
  const isTyped = typeof payload === 'object' && payload !== null && 'type' in payload
  return isTyped ? String(payload.type) : 'message'
}

function collect(run: (events: GenerationEvent[]) => void): Decoded {
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
  return { events, error }
}

/** Events with the deltas of each block joined, which do not depend on how bytes arrive. */
export function mergeDeltas(events: readonly GenerationEvent[]): GenerationEvent[] {
  const merged: GenerationEvent[] = []
  for (const event of events) {
    const last = merged.at(-1)
    if (last?.type === 'text-delta' && event.type === 'text-delta') {
      const logprobs = [...(last.logprobs ?? []), ...(event.logprobs ?? [])]
      const text = last.text + event.text
      merged[merged.length - 1] = { ...last, text, ...(logprobs.length > 0 ? { logprobs } : {}) }
    } else if (last?.type === 'tool-call-delta' && event.type === 'tool-call-delta') {
      merged[merged.length - 1] = { ...last, text: last.text + event.text }
    } else if (
      last?.type === 'reasoning-delta' &&
      event.type === 'reasoning-delta' &&
      last.part === event.part
    ) {
      merged[merged.length - 1] = { ...last, text: last.text + event.text }
    } else {
      merged.push(event)
    }
  }
  return merged
}

/** A block in the form that tests compare; default fields are omitted. */
export type Block =
  | {
      text: string
      form?: 'refusal'
      phase?: string
      citations?: Citation[]
      logprobs?: TokenLogprob[]
      cut?: true
    }
  | { reasoning: string[]; sealed?: string; cut?: true }
  | { call: string; id: string; input: string; namespace?: string; custom?: true; cut?: true }
  | { hosted: unknown; stages: string[]; end: unknown }

/** The blocks of a generation, in order. */
export function blocksOf({ events }: Pick<Decoded, 'events'>): Block[] {
  const blocks: Block[] = []
  for (const event of events) takeEvent(blocks, event)
  return blocks
}

function takeEvent(blocks: Block[], event: GenerationEvent): void {
  const last = blocks.at(-1)
  const cut = 'complete' in event && !event.complete ? ({ cut: true } as const) : {}
  if (event.type === 'text-start') {
    const { form, phase } = event
    blocks.push({
      text: '',
      ...(form === 'refusal' ? { form } : {}),
      ...(phase === undefined ? {} : { phase }),
    })
  } else if (event.type === 'reasoning-start') {
    blocks.push({ reasoning: [] })
  } else if (event.type === 'tool-call-start') {
    const { callId, name, namespace, form } = event.call
    blocks.push({
      call: name,
      id: callId,
      input: '',
      ...(namespace === undefined ? {} : { namespace }),
      ...(form === 'custom' ? { custom: true } : {}),
    })
  } else if (event.type === 'hosted-tool-start') {
    blocks.push({ hosted: event.item, stages: [], end: undefined })
  } else if (last !== undefined && 'text' in last) {
    if (event.type === 'text-delta') {
      last.text += event.text
      if (event.logprobs) last.logprobs = [...(last.logprobs ?? []), ...event.logprobs]
    } else if (event.type === 'citation') {
      last.citations = [...(last.citations ?? []), event.citation]
    } else Object.assign(last, cut)
  } else if (last !== undefined && 'reasoning' in last) {
    if (event.type === 'reasoning-delta') {
      last.reasoning[event.part] = (last.reasoning[event.part] ?? '') + event.text
    } else if (event.type === 'reasoning-end' && event.sealed !== undefined) {
      Object.assign(last, cut, { sealed: event.sealed })
    } else Object.assign(last, cut)
  } else if (last !== undefined && 'call' in last) {
    if (event.type === 'tool-call-delta') last.input += event.text
    else Object.assign(last, cut)
  } else if (last !== undefined) {
    if (event.type === 'hosted-tool-progress') last.stages.push(event.stage)
    else if (event.type === 'hosted-tool-end') last.end = event.item
  }
}

export function finishOf({ events }: Pick<Decoded, 'events'>): unknown {
  const last = events.at(-1)
  return last?.type === 'finish' ? last : null
}
