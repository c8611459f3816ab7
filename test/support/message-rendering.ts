import type { EventBatch, GenerationEvent, Usage } from '#inference/events.ts'
import {
  createMessageRenderer,
  type MessageRenderer,
  type MessageRendererOptions,
} from '#surfaces/messages/render.ts'
import { type CheckedMessage, checkMessageStream } from './message-frames.ts'
import { openSeal, testSeals } from './sealing.ts'

export const someUsage: Usage = {
  inputTokens: 20,
  cachedTokens: 8,
  cacheWriteTokens: 2,
  outputTokens: 9,
  reasoningTokens: 4,
  totalTokens: 29,
}

/** A renderer for a plain request, with transparent seals. */
export function openMessageRenderer(given: Partial<MessageRendererOptions> = {}): MessageRenderer {
  return createMessageRenderer({
    id: 'msg_test',
    model: 'vendor-model-m',
    inputTokens: 12,
    reasoningSeal: openSeal,
    searchSeal: testSeals.search,
    thinkingDisplay: 'summarized',
    stream: true,
    ...given,
  })
}

/** The stream of these batches, validated. */
export function renderMessage(
  batches: readonly EventBatch[],
  given: Partial<MessageRendererOptions> = {},
): CheckedMessage & { wire: string } {
  const renderer = openMessageRenderer(given)
  const wire = batches.map((batch) => renderer.push(batch)).join('')
  return { ...checkMessageStream(wire), wire }
}

/** The same without streaming. */
export function foldMessage(
  batches: readonly EventBatch[],
  given: Partial<MessageRendererOptions> = {},
) {
  const renderer = openMessageRenderer({ ...given, stream: false })
  for (const batch of batches) renderer.push(batch)
  return renderer.result()
}

/** A complete generation with these blocks. */
export function generationOf(
  blocks: readonly GenerationEvent[],
  finish: Partial<Extract<GenerationEvent, { type: 'finish' }>> = {},
): GenerationEvent[] {
  return [
    { type: 'generation-start' },
    ...blocks,
    { type: 'finish', reason: 'stop', rawReason: 'stop', usage: someUsage, ...finish },
  ]
}

export function textBlock(block: number, ...pieces: string[]): GenerationEvent[] {
  return [
    { type: 'text-start', block, form: 'answer' },
    ...pieces.map((text): GenerationEvent => ({ type: 'text-delta', block, text })),
    { type: 'text-end', block, complete: true },
  ]
}

export function callBlock(
  block: number,
  given: { callId?: string; form?: 'function' | 'custom'; pieces?: string[]; complete?: boolean },
): GenerationEvent[] {
  const { callId = `call_${block}`, form = 'function', pieces = ['{}'], complete = true } = given
  return [
    { type: 'tool-call-start', block, call: { callId, name: 'get_weather', form } },
    ...pieces.map((text): GenerationEvent => ({ type: 'tool-call-delta', block, text })),
    { type: 'tool-call-end', block, complete },
  ]
}
