import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { AdapterContext, UpstreamQuirks } from '#inference/upstream.ts'
import type { AppError } from '#lib/errors.ts'
import { toAppError } from '#lib/errors.ts'
import { createRequestContext, type RequestContext } from '#lib/request-context.ts'
import { createGrammar } from '#test/support/grammar.ts'
import { fetchTransport } from './transport.ts'

/** A request with one user message and defaults. */
export function makeRequest(given: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    model: 'a-model',
    instructions: null,
    items: [userMessage('Hello')],
    tools: [],
    toolChoice: { type: 'auto' },
    parallelToolCalls: true,
    sampling: {
      temperature: null,
      topP: null,
      topK: null,
      stopSequences: [],
      presencePenalty: null,
      frequencyPenalty: null,
      maxOutputTokens: null,
      topLogprobs: null,
    },
    format: { type: 'text' },
    verbosity: null,
    reasoning: { effort: null, summary: null },
    promptCacheKey: null,
    safetyIdentifier: null,
    serviceTier: null,
    ...given,
  }
}

export function userMessage(text: string): GenerationRequest['items'][number] {
  return { type: 'message', role: 'user', parts: [{ type: 'text', text }] }
}

/** The quirks of an unconfigured upstream. */
export const defaultQuirks: UpstreamQuirks = {
  maxTokensField: 'max_tokens',
  reasoningFields: ['reasoning', 'reasoning_content'],
  reasoningEffort: 'reasoning_effort',
  streamUsage: true,
  unstreamed: true,
  lateSystemMessages: false,
  prefill: 'none',
  developerRole: false,
  strictTools: false,
  thinkTags: false,
  vendorFields: false,
  files: false,
  keyHeader: 'x-api-key',
  thinking: 'budget',
  outputFormat: false,
  defaultMaxTokens: 32_000,
  tokenCounter: 'none',
  rerankFields: 'documents',
}

export function makeContext(
  given: Partial<Omit<AdapterContext, 'upstream'>> & { baseUrl?: string } = {},
): AdapterContext {
  const { baseUrl = 'http://127.0.0.1:1/v1', ...rest } = given
  return {
    upstream: {
      name: 'an-upstream',
      kind: 'chat',
      baseUrl,
      key: 'a-secret',
      headers: {},
      quirks: defaultQuirks,
    },
    model: 'upstream-model',
    transport: fetchTransport,
    signal: new AbortController().signal,
    limits: { eventBytesMax: 1_048_576, toolArgumentCharsMax: 65_536 },
    requestContext: makeRequestContext(),
    streamed: true,
    ...rest,
  }
}

/** The context of the request `req_1`. */
export function makeRequestContext(signal = new AbortController().signal): RequestContext {
  const principal = { userId: 'user-1', groups: [] }
  return createRequestContext({ requestId: 'req_1', principal, signal })
}

/** Every event, and the error that ended them; validates the grammar. */
export async function collectEvents(
  batches: AsyncIterable<EventBatch>,
): Promise<{ events: GenerationEvent[]; error: AppError | null }> {
  const grammar = createGrammar()
  const events: GenerationEvent[] = []
  try {
    for await (const batch of batches) {
      for (const event of batch) grammar.check(event)
      events.push(...batch)
    }
    grammar.end()
    return { events, error: null }
  } catch (error) {
    return { events, error: toAppError(error) }
  }
}

/**
 * The same events with adjacent deltas of a block joined: splitting bytes may change nothing else.
 */
export function mergeDeltas(events: readonly GenerationEvent[]): GenerationEvent[] {
  const merged: GenerationEvent[] = []
  for (const event of events) {
    const last = merged.at(-1)
    if (last !== undefined && 'text' in event && 'text' in last && event.type === last.type) {
      merged[merged.length - 1] = { ...event, text: last.text + event.text }
    } else {
      merged.push(event)
    }
  }
  return merged
}
