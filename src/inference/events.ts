import type { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'

/**
 * The one vocabulary between upstream adapters and surfaces.
 *
 * A generation is a sequence of events in the order that `grammar.ts` states: one
 * `generation-start`, then blocks that never overlap (`<noun>-start`, `-delta`…, `-end`), then
 * exactly one terminal event (`finish` or `error`). Events are plain data and are never changed
 * after they were emitted. `block` numbers rise from 0 within one generation and are ours: no id of
 * an upstream is in here, except a tool call's `callId`, which the caller must be able to send back.
 */
export type GenerationEvent =
  | { type: 'generation-start' }
  | { type: 'text-start'; block: number; form: TextForm; phase?: string }
  | { type: 'text-delta'; block: number; text: string; logprobs?: readonly TokenLogprob[] }
  | { type: 'citation'; block: number; citation: Citation }
  | { type: 'text-end'; block: number; complete: boolean }
  /** `summary`: not the model's own thoughts but a summary of them, made by the upstream. */
  | { type: 'reasoning-start'; block: number; form?: 'summary' }
  /** `part` rises from 0: a new number opens a new paragraph (summary part) of the same block. */
  | { type: 'reasoning-delta'; block: number; part: number; text: string }
  /** `sealed` is for `sealedBy` alone: one model at one upstream, under the names that we use. */
  | { type: 'reasoning-end'; block: number; complete: boolean; sealed?: string; sealedBy?: string }
  | { type: 'tool-call-start'; block: number; call: ToolCallHead }
  /** A piece of the arguments (JSON text), or of the input text when the call's form is custom. */
  | { type: 'tool-call-delta'; block: number; text: string }
  | { type: 'tool-call-end'; block: number; complete: boolean }
  | { type: 'hosted-tool-start'; block: number; item: HostedToolItem }
  | { type: 'hosted-tool-progress'; block: number; stage: string }
  /** A piece of the arguments of a hosted call, where its item type has any (`mcp_call`). */
  | { type: 'hosted-tool-delta'; block: number; text: string }
  /** `item` as it ended; null where it was cut off and nothing more is known of it. */
  | { type: 'hosted-tool-end'; block: number; item: HostedToolItem | null }
  | {
      type: 'finish'
      reason: FinishReason
      rawReason: string | null
      usage: Usage | null
      /** With the reason `stop-sequence`: which one it was. */
      stopSequence?: string
    }
  | { type: 'error'; error: AppError }

/** The events that belong to a block. */
export type BlockEvent = Extract<GenerationEvent, { block: number }>

/** What arrived in one read of the upstream, translated; rendered into one write. */
export type EventBatch = readonly GenerationEvent[] & { readonly relay?: Relay }

/**
 * The same, as messages of the upstream's own protocol, for a caller of that protocol, who gets them
 * in place of the events. Either every batch of a generation has them or none has, but for a last one
 * that holds an `error`; over all batches they are one legal stream of the protocol. A batch may hold
 * frames and no event. Whatever changes a batch makes a new array, and so drops them.
 */
export type Relay = {
  readonly protocol: 'messages'
  readonly frames: readonly RelayFrame[]
  /** Who can open what is `sealed`, as `reasoning-end` names it. */
  readonly maker: string
}

export type RelayFrame = {
  readonly payload: JsonObject
  /** The JSON text of `payload` as it came, on one line. */
  readonly data: string
  /** What the upstream sealed in it (signature of thinking, redacted thinking), as events carry it. */
  readonly sealed?: string
}

/** Attaches frames to a batch, if there are any. */
export function withRelay(events: GenerationEvent[], relay: Relay | undefined): EventBatch {
  return relay === undefined ? events : Object.assign(events, { relay })
}

/** Concatenates the frames of two consecutive batches. */
export function joinRelays(one: Relay | undefined, next: Relay | undefined): Relay | undefined {
  if (one === undefined || next === undefined) return one ?? next
  return { ...next, frames: [...one.frames, ...next.frames] }
}

export type TextForm = 'answer' | 'refusal'

/** `invalid-output`: the answer does not have the form that the request demanded. */
export type FinishReason =
  | 'stop'
  | 'stop-sequence'
  | 'length'
  | 'tool-calls'
  | 'content-filter'
  | 'invalid-output'

export type ToolCallHead = {
  /** Unique within the generation; the caller sends the result back under it. */
  callId: string
  name: string
  /** Set when the tool was given inside a namespace; `name` is then the name within it. */
  namespace?: string
  /** `custom` calls carry free text, `function` calls carry JSON arguments. */
  form: 'function' | 'custom'
}

/**
 * A tool that ran on this side of the caller, at the upstream (web search, code interpreter, …) or
 * here (remote MCP servers), in the item shape of the Responses format, which is the richest that
 * exists; ids of an upstream are removed.
 */
export type HostedToolItem = { readonly type: string; readonly [field: string]: unknown }

export type Citation =
  | { kind: 'url'; url: string; title: string; startIndex: number; endIndex: number }
  /** `quoted`: the passage itself, and its number, from 1, among those that this response was given. */
  | {
      kind: 'file'
      fileId: string
      filename: string
      index: number
      quoted?: { number: number; text: string }
    }

export type TokenLogprob = {
  token: string
  logprob: number
  bytes: readonly number[]
  top: readonly { token: string; logprob: number; bytes: readonly number[] }[]
}

export type Usage = {
  inputTokens: number
  cachedTokens: number
  cacheWriteTokens: number
  outputTokens: number
  reasoningTokens: number
  totalTokens: number
}

/** The sum of two usages; an unknown one counts as zero. */
export function addUsage(one: Usage | null, other: Usage | null): Usage | null {
  if (one === null || other === null) return one ?? other
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
    totalTokens: one.totalTokens + other.totalTokens,
  }
}
