import type { GenerationEvent, Usage } from '#inference/events.ts'
import { assertNever } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import type { BlockTally } from './blocks.ts'

/** `omitted`: thinking has a signature but no text. */
export type ThinkingDisplay = 'summarized' | 'omitted'

/** One block of a message's `content`. */
export type ContentBlock = { readonly type: string; readonly [field: string]: unknown }

/** The Message object. */
export type MessageObject = {
  readonly id: string
  readonly type: 'message'
  readonly role: 'assistant'
  /** The name that the client used. */
  readonly model: string
  readonly content: readonly ContentBlock[]
  readonly usage: object
  /** Additional fields of an upstream of the same protocol. */
  readonly [field: string]: unknown
} & Omit<MessageEnd, 'stop_reason'> & { readonly stop_reason: StopReason | null }

type StopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'stop_sequence'
  | 'tool_use'
  | 'pause_turn'
  | 'refusal'
  | 'model_context_window_exceeded'

/** Why a message ended: the `delta` of `message_delta`, and fields of the message. */
export type MessageEnd = {
  readonly stop_reason: StopReason
  readonly stop_sequence: string | null
  /** `explanation`: null if the message contains one. */
  readonly stop_details: {
    readonly type: 'refusal'
    readonly category: null
    readonly explanation: string | null
  } | null
  readonly container: null
}

/** A message without content. */
export function emptyMessage(head: { id: string; model: string; usage: object }): MessageObject {
  return {
    id: head.id,
    type: 'message',
    role: 'assistant',
    model: head.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: head.usage,
  }
}

export type Finish = Extract<GenerationEvent, { type: 'finish' }>

/** The reasons of upstreams for a full context window. */
const fullWindowReasons: ReadonlySet<string> = new Set([
  'model_context_window_exceeded',
  'model_length',
])

/** The end of the message. Invalid output is an error, because the format has no stop reason for it. */
export function renderEnd(finish: Finish, tally: BlockTally): MessageEnd | AppError {
  switch (finish.reason) {
    case 'stop':
    case 'tool-calls':
    case 'steered':
      return endOfTurn(finish, tally)
    case 'stop-sequence':
      return { ...ended('stop_sequence'), stop_sequence: finish.stopSequence ?? null }
    case 'length':
      return ended(
        fullWindowReasons.has(finish.rawReason ?? '')
          ? 'model_context_window_exceeded'
          : 'max_tokens',
      )
    case 'content-filter':
      return refusal('The content filter of the upstream ended the output.')
    case 'invalid-output':
      return new AppError(
        'upstream_invalid_answer',
        'The output of the model does not conform to the requested format.',
      )
    default:
      return assertNever(finish.reason)
  }
}

/** Tool calls take precedence over the reason, since many servers report a plain stop. */
function endOfTurn({ rawReason }: Finish, tally: BlockTally): MessageEnd {
  if (tally.toolUses > 0) return ended('tool_use')
  if (tally.hasRefusal) return refusal(null)
  return ended(rawReason === 'pause_turn' ? 'pause_turn' : 'end_turn')
}

function refusal(explanation: string | null): MessageEnd {
  return { ...ended('refusal'), stop_details: { type: 'refusal', category: null, explanation } }
}

export function ended(reason: StopReason): MessageEnd {
  return { stop_reason: reason, stop_sequence: null, stop_details: null, container: null }
}

/** An estimate, before or without the count of the upstream. */
export function estimatedUsage(
  counts: { inputTokens: number; outputTokens: number },
  webSearches = 0,
) {
  const usage = { ...counts, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
  return { ...renderUsage(usage, webSearches), output_tokens_details: null }
}

/** The usage of a message, with every field that clients expect. */
export function renderUsage(usage: Omit<Usage, 'totalTokens'>, webSearches: number) {
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage
  return {
    // Without cached tokens: the complete input is the sum of this and the next two.
    input_tokens: Math.max(0, inputTokens - cachedTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    // Upstreams do not report the lifetime; five minutes is the default of the format.
    cache_creation: { ephemeral_5m_input_tokens: cacheWriteTokens, ephemeral_1h_input_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { thinking_tokens: Math.min(reasoningTokens, outputTokens) },
    server_tool_use:
      webSearches === 0 ? null : { web_search_requests: webSearches, web_fetch_requests: 0 },
    service_tier: null,
    speed: null,
    inference_geo: null,
  }
}
