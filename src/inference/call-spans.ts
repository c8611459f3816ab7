import type { Span } from '#lib/trace.ts'
import { boundedContent, type ContentMessage, renderMessages } from '#lib/trace-content.ts'
import type { EventBatch } from './events.ts'
import type { ModelCall } from './inference.ts'
import type { CallKind, CallRecord } from './open-call.ts'
import type { ContentPart, GenerationRequest, RequestItem } from './request.ts'
import type { Slot } from './routing/slot.ts'
import type { Upstream } from './upstream.ts'

/** The spans of calls to models, with the names of the semantic conventions for GenAI. */

const operations: Readonly<Record<CallKind, string>> = {
  generate: 'chat',
  embed: 'embeddings',
  rerank: 'rerank',
  speak: 'speak',
  'count-tokens': 'count_tokens',
}

/** The span of a call with all of its attempts; null where the trace is not sampled. */
export function startCallSpan(
  { kind, model, agentId, responseId }: CallRecord,
  { context, request }: ModelCall,
  startedAtMs: number,
): Span | null {
  const parent = context.trace?.span
  if (parent == null) return null
  const sampling = request?.sampling
  const operation = operations[kind]
  const span = parent.startChild(`${operation} ${model}`, {
    startedAtMs,
    attributes: {
      'gen_ai.operation.name': operation,
      'gen_ai.request.model': model,
      'gen_ai.agent.id': agentId,
      'gen_ai.response.id': responseId,
      'gen_ai.request.max_tokens': sampling?.maxOutputTokens,
      'gen_ai.request.temperature': sampling?.temperature,
      'gen_ai.request.top_p': sampling?.topP,
      'gen_ai.request.top_k': sampling?.topK,
      'gen_ai.request.frequency_penalty': sampling?.frequencyPenalty,
      'gen_ai.request.presence_penalty': sampling?.presencePenalty,
    },
  })
  if (span.content !== null && request !== undefined) {
    span.set({
      'gen_ai.system_instructions':
        request.instructions === null ? null : boundedContent(request.instructions, span.content),
      'gen_ai.input.messages': renderMessages(messagesOf(request), span.content),
    })
  }
  return span
}

/** The span of one attempt, which is the parent that the upstream sees. */
export function startAttemptSpan(parent: Span, slot: Slot, attempt: number): Span {
  const { target, kind } = slot
  const { upstream } = slot.state.upstream
  const url = URL.parse(upstream.baseUrl)
  return parent.startChild(`attempt ${upstream.name}`, {
    kind: 'client',
    attributes: {
      'gen_ai.provider.name': providerOf(upstream),
      'gen_ai.request.model': target.model,
      'sluice.upstream': upstream.name,
      'sluice.operation': operations[kind],
      'http.request.resend_count': attempt > 0 ? attempt : undefined,
      'server.address': url?.hostname,
      'server.port': url === null ? undefined : Number(url.port || defaultPorts[url.protocol]),
    },
  })
}

export function endCallSpan(span: Span, record: CallRecord, output: OutputContent | null): void {
  const { target, usage, error, outcome, firstEventMs } = record
  span.set({
    'gen_ai.provider.name': target === null ? undefined : providerOf(target.upstream),
    'gen_ai.response.model': target?.model,
    'gen_ai.usage.input_tokens': usage?.inputTokens,
    'gen_ai.usage.output_tokens': usage?.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage?.cachedTokens || undefined,
    'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens || undefined,
    'gen_ai.usage.reasoning.output_tokens': usage?.reasoningTokens || undefined,
    'gen_ai.response.time_to_first_chunk': firstEventMs === null ? undefined : firstEventMs / 1_000,
    'sluice.retries': record.retries,
    'sluice.hedged': record.hedged ? true : undefined,
    'sluice.queue_ms': record.queuedMs > 0 ? record.queuedMs : undefined,
    'sluice.outcome': outcome,
  })
  if (output !== null && span.content !== null) {
    span.set({ 'gen_ai.output.messages': renderMessages([output.message()], span.content) })
  }
  if (output?.finishReason != null) {
    span.set({ 'gen_ai.response.finish_reasons': [output.finishReason] })
  }
  if (error !== null) span.fail(error.kind, error.message)
  span.end(record.endedAtMs)
}

/** How a sampled generation ended, and its output where contents are recorded. */
export class OutputContent {
  finishReason: string | null = null
  #text = ''
  readonly #charsMax: number

  constructor(span: Span) {
    this.#charsMax = span.content === null ? 0 : span.content.charsMax * 2
  }

  add(batch: EventBatch): void {
    for (const event of batch) {
      if (event.type === 'finish') this.finishReason = event.reason
      if (this.#text.length >= this.#charsMax) continue
      if (event.type === 'tool-call-start') this.#text += `[${event.call.name}] `
      if (event.type === 'text-delta' || event.type === 'tool-call-delta') this.#text += event.text
    }
  }

  message(): ContentMessage {
    return { role: 'assistant', parts: [{ type: 'text', content: this.#text }] }
  }
}

function messagesOf({ items }: GenerationRequest): ContentMessage[] {
  return items.flatMap((item): ContentMessage[] => {
    const message = messageOf(item)
    return message === null ? [] : [message]
  })
}

function messageOf(item: RequestItem): ContentMessage | null {
  switch (item.type) {
    case 'message':
      return { role: item.role, parts: item.parts.map(partOf) }
    case 'tool-call':
      return {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: item.callId, name: item.name, content: item.arguments }],
      }
    case 'tool-result':
      return {
        role: 'tool',
        parts: item.parts.map((part) => ({ ...partOf(part), id: item.callId })),
      }
    default:
      return null
  }
}

function partOf(part: ContentPart) {
  return 'text' in part ? { type: 'text', content: part.text } : { type: part.type, content: '' }
}

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/** Hosts of providers that the conventions name. */
const providers: readonly (readonly [host: RegExp, name: string])[] = [
  [/(^|\.)openai\.azure\.com$/, 'azure.ai.openai'],
  [/(^|\.)anthropic\.com$/, 'anthropic'],
  [/(^|\.)mistral\.ai$/, 'mistral_ai'],
  [/(^|\.)deepseek\.com$/, 'deepseek'],
  [/(^|\.)groq\.com$/, 'groq'],
  [/(^|\.)x\.ai$/, 'x_ai'],
  [/(^|\.)perplexity\.ai$/, 'perplexity'],
  [/(^|\.)cohere\.(ai|com)$/, 'cohere'],
  [/(^|\.)googleapis\.com$/, 'gcp.gen_ai'],
  [/(^|\.)amazonaws\.com$/, 'aws.bedrock'],
]

/** For servers of other hosts, the protocol that they speak, as the conventions advise. */
function providerOf({ baseUrl, kind }: Upstream): string {
  const host = URL.parse(baseUrl)?.hostname ?? ''
  const known = providers.find(([pattern]) => pattern.test(host))
  if (known !== undefined) return known[1]
  if (kind === 'messages') return 'anthropic'
  return kind === 'llama' || kind === 'demo' ? `sluice.${kind}` : 'openai'
}
