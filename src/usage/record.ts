import { type CallKind, type CallRecord, servedModelOf } from '#inference/open-call.ts'
import { isUuid } from '#lib/uuid.ts'
import type { ChargedTokens } from '#limits/prices.ts'

export const usageKinds = [
  'generation',
  'embedding',
  'rerank',
  'speech',
  'token_count',
  'transcription',
  'speech_session',
] as const
type UsageKind = (typeof usageKinds)[number]

export const usageOutcomes = ['completed', 'failed', 'cancelled'] as const
type UsageOutcome = (typeof usageOutcomes)[number]

/** A speech session or a transcribed file, when it ends. */
export type SpeechUse = {
  readonly kind: 'transcription' | 'speech_session'
  readonly requestId: string
  readonly userId: string
  readonly keyId: string | null
  /** The model of the request, if it names one. */
  readonly requestedModel: string | null
  /** Null: it failed before there was an engine. */
  readonly engine: string | null
  readonly outcome: UsageOutcome
  readonly errorKind: string | null
  readonly audioMs: number
  readonly durationMs: number
  /** `performance.now()` of the end. */
  readonly endedAtMs: number
}

/** What waits to be written: the object of the call itself, so that recording it costs nothing more. */
export type PendingUse = CallRecord | SpeechUse

/** One line of the ledger. It holds no content of requests. */
export type UsageRecord = {
  readonly id: string
  readonly endedAt: Date
  readonly kind: UsageKind
  readonly userId: string | null
  readonly keyId: string | null
  readonly agentId: string | null
  readonly surface: string | null
  readonly model: string
  readonly requestedModel: string | null
  readonly upstream: string | null
  readonly upstreamModel: string | null
  readonly outcome: UsageOutcome
  readonly errorKind: string | null
  readonly retries: number
  readonly requestId: string
  readonly responseId: string | null
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly estimated: boolean
  readonly audioMs: number
  readonly costNanos: number | null
  readonly queueMs: number | null
  readonly firstEventMs: number | null
  readonly durationMs: number
}

/** The cost in billionths of the currency; null without a price. */
export type PriceOf = (model: string, used: ChargedTokens) => number | null

const kindOfCall: Readonly<Record<CallKind, UsageKind>> = {
  generate: 'generation',
  embed: 'embedding',
  rerank: 'rerank',
  speak: 'speech',
  'count-tokens': 'token_count',
}

const nameCharsMax = 256
/** An upstream may report anything; sums of these fit their columns. */
const tokensMax = 1e9
const msMax = 2 ** 31 - 1
const costNanosMax = 1e13

/** `nowMs` and `wallMs`: the same moment by `performance.now()` and by the clock. */
export type Moment = { readonly nowMs: number; readonly wallMs: number }

export function toUsageRecord(use: PendingUse, at: Moment, priceOf: PriceOf): UsageRecord {
  const endedAtMs = Math.round(at.wallMs - (at.nowMs - use.endedAtMs))
  const record = 'engine' in use ? ofSpeech(use, endedAtMs) : ofCall(use, endedAtMs)
  const costNanos = priceOf(record.model, record)
  if (costNanos !== null) record.costNanos = wholeUpTo(costNanosMax, costNanos)
  return record
}

/** A record without its cost. */
type Unpriced = Omit<UsageRecord, 'costNanos'> & { costNanos: number | null }

function ofCall(call: CallRecord, endedAtMs: number): Unpriced {
  const { usage, target, firstEventMs } = call
  const model = nameOf(servedModelOf(call))
  const requested = nameOf(call.model)
  return {
    id: Bun.randomUUIDv7('hex', endedAtMs),
    endedAt: new Date(endedAtMs),
    kind: kindOfCall[call.kind],
    userId: isUuid(call.userId) ? call.userId : null,
    keyId: call.keyId,
    agentId: call.agentId,
    surface: call.surface,
    model,
    requestedModel: requested === model ? null : requested,
    upstream: target === null ? null : nameOf(target.upstream.name),
    upstreamModel: target === null ? null : nameOf(target.model),
    outcome: call.outcome,
    errorKind: call.error?.kind ?? null,
    retries: call.retries,
    requestId: call.requestId,
    responseId: call.responseId,
    inputTokens: wholeUpTo(tokensMax, usage?.inputTokens ?? 0),
    cachedTokens: wholeUpTo(tokensMax, usage?.cachedTokens ?? 0),
    cacheWriteTokens: wholeUpTo(tokensMax, usage?.cacheWriteTokens ?? 0),
    outputTokens: wholeUpTo(tokensMax, usage?.outputTokens ?? 0),
    reasoningTokens: wholeUpTo(tokensMax, usage?.reasoningTokens ?? 0),
    estimated: usage?.estimated ?? false,
    audioMs: wholeUpTo(msMax, call.audioMs ?? 0),
    costNanos: null,
    queueMs: wholeUpTo(msMax, call.queuedMs),
    firstEventMs: firstEventMs === null ? null : wholeUpTo(msMax, firstEventMs),
    durationMs: wholeUpTo(msMax, call.durationMs),
  }
}

function ofSpeech(use: SpeechUse, endedAtMs: number): Unpriced {
  const { engine } = use
  const requested = use.requestedModel === null ? null : nameOf(use.requestedModel)
  const model = engine ?? requested ?? ''
  return {
    id: Bun.randomUUIDv7('hex', endedAtMs),
    endedAt: new Date(endedAtMs),
    kind: use.kind,
    userId: isUuid(use.userId) ? use.userId : null,
    keyId: use.keyId,
    agentId: null,
    surface: null,
    model,
    requestedModel: requested === model ? null : requested,
    upstream: engine,
    upstreamModel: null,
    outcome: use.outcome,
    errorKind: use.errorKind,
    retries: 0,
    requestId: use.requestId,
    responseId: null,
    inputTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    estimated: false,
    audioMs: wholeUpTo(msMax, use.audioMs),
    costNanos: null,
    queueMs: null,
    firstEventMs: null,
    durationMs: wholeUpTo(msMax, use.durationMs),
  }
}

/** Names come from requests and configuration: no text column takes a NUL or a lone surrogate. */
function nameOf(text: string): string {
  return text.slice(0, nameCharsMax).replaceAll('\0', '').toWellFormed()
}

function wholeUpTo(max: number, value: number): number {
  return Number.isFinite(value) ? Math.min(max, Math.max(0, Math.round(value))) : 0
}
