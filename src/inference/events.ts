import type { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'

/**
 * The events between upstream adapters and surfaces.
 *
 *     generation  = generation-start block* ( finish | error )
 *     block       = text | reasoning | tool-call | hosted-tool
 *     text        = text-start ( text-delta | citation )* text-end
 *     reasoning   = reasoning-start reasoning-delta* reasoning-end
 *     tool-call   = tool-call-start tool-call-delta* tool-call-end
 *     hosted-tool = hosted-tool-start ( hosted-tool-progress | -delta | -event )* hosted-tool-end
 *
 * Blocks never overlap and are numbered 0, 1, 2 … per generation. An incomplete block is the last one.
 * Events are immutable plain data. They contain no upstream ids except a tool call's `callId`, which
 * clients send back.
 */
export type GenerationEvent =
  | { type: 'generation-start' }
  | { type: 'text-start'; block: number; form: TextForm; phase?: string }
  | { type: 'text-delta'; block: number; text: string; logprobs?: readonly TokenLogprob[] }
  | { type: 'citation'; block: number; citation: Citation }
  | { type: 'text-end'; block: number; complete: boolean }
  /** `summary`: the upstream's summary instead of the reasoning itself. */
  | { type: 'reasoning-start'; block: number; form?: 'summary' }
  /** `part` starts at 0; a new number starts a new paragraph (summary part) of the block. */
  | { type: 'reasoning-delta'; block: number; part: number; text: string }
  /** `sealed` can only be opened by `sealedBy`: `upstream/model`. */
  | { type: 'reasoning-end'; block: number; complete: boolean; sealed?: string; sealedBy?: string }
  | { type: 'tool-call-start'; block: number; call: ToolCallHead }
  /** A delta of the arguments (JSON text), or of the input text of a custom call. */
  | { type: 'tool-call-delta'; block: number; text: string }
  | { type: 'tool-call-end'; block: number; complete: boolean }
  | { type: 'hosted-tool-start'; block: number; item: HostedToolItem }
  | { type: 'hosted-tool-progress'; block: number; stage: string }
  /** A delta of the input of a hosted call, for item types with one (`mcp_call`, `code_interpreter_call`). */
  | { type: 'hosted-tool-delta'; block: number; text: string }
  /** Another event of the Responses format about the item, `response.` + `name`, without its ids. */
  | { type: 'hosted-tool-event'; block: number; name: HostedEventName; fields: JsonObject }
  /** The final `item`; null if it was truncated. */
  | { type: 'hosted-tool-end'; block: number; item: HostedToolItem | null }
  | {
      type: 'finish'
      reason: FinishReason
      rawReason: string | null
      usage: Usage | null
      /** Set with the reason `stop-sequence`. */
      stopSequence?: string
      /** Fields of the Response object of an upstream of this format that say more about the call. */
      reported?: JsonObject
    }
  | { type: 'error'; error: AppError }

/** The events that belong to a block. */
export type BlockEvent = Extract<GenerationEvent, { block: number }>

/** The incomplete end of the block that `last` leaves open, if any. */
export function endOfBlock(last: GenerationEvent): BlockEvent[] {
  switch (last.type) {
    case 'text-start':
    case 'text-delta':
    case 'citation':
      return [{ type: 'text-end', block: last.block, complete: false }]
    case 'reasoning-start':
    case 'reasoning-delta':
      return [{ type: 'reasoning-end', block: last.block, complete: false }]
    case 'tool-call-start':
    case 'tool-call-delta':
      return [{ type: 'tool-call-end', block: last.block, complete: false }]
    case 'hosted-tool-start':
    case 'hosted-tool-progress':
    case 'hosted-tool-delta':
    case 'hosted-tool-event':
      return [{ type: 'hosted-tool-end', block: last.block, item: null }]
    default:
      return []
  }
}

/** The events of one upstream read, rendered into one write. */
export type EventBatch = readonly GenerationEvent[] & { readonly relay?: Relay }

/**
 * The original frames of a batch, for a client of the upstream's protocol, which receives them instead
 * of the events. Either all batches of a generation have frames or none, except a last batch with an
 * `error`. Together they are one legal stream of the protocol. A batch may have frames and no event. Code
 * that changes a batch creates a new array, which drops the frames.
 */
export type Relay = {
  readonly protocol: 'messages'
  readonly frames: readonly RelayFrame[]
  /** As `sealedBy` of `reasoning-end`. */
  readonly maker: string
}

export type RelayFrame = {
  readonly payload: JsonObject
  /** The original JSON text of `payload`, on one line; empty where it was changed: see `textOfFrame`. */
  readonly data: string
  /** The sealed payload in it (thinking signature, redacted thinking), as in events. */
  readonly sealed?: string
}

/** The JSON text of a frame. Whole responses are made of payloads and need none. */
export function textOfFrame({ payload, data }: RelayFrame): string {
  return data === '' ? JSON.stringify(payload) : data
}

/** A frame that differs from what arrived, or did not arrive. */
export function changedFrame(payload: JsonObject): RelayFrame {
  return { payload, data: '' }
}

/** Appends events to held ones, joining deltas of a text so that memory stays proportional to its length. */
export function appendEvents(held: GenerationEvent[], events: EventBatch): void {
  for (const event of events) {
    const last = held.at(-1)
    const joined = last === undefined ? null : join(last, event)
    if (joined === null) held.push(event)
    else held[held.length - 1] = joined
  }
}

/** Joins two deltas of one text. Blocks do not overlap, so neighbours belong to the same block. */
function join(last: GenerationEvent, event: GenerationEvent): GenerationEvent | null {
  if (!('text' in last && 'text' in event) || last.type !== event.type) return null
  if ('logprobs' in last || 'logprobs' in event) return null
  if ('part' in last && 'part' in event && last.part !== event.part) return null
  return { ...last, text: last.text + event.text }
}

/** Attaches frames to a batch, if there are any. */
export function withRelay(
  events: GenerationEvent[] & { relay?: Relay },
  relay: Relay | undefined,
): EventBatch {
  if (relay !== undefined) events.relay = relay
  return events
}

/** Concatenates the frames of two consecutive batches. */
export function joinRelays(one: Relay | undefined, next: Relay | undefined): Relay | undefined {
  if (one === undefined || next === undefined) return one ?? next
  return { ...next, frames: [...one.frames, ...next.frames] }
}

export type TextForm = 'answer' | 'refusal'

/**
 * `invalid-output`: the response does not have the requested format. `steered`: the client interrupted
 * it, to go on with another instruction.
 */
export type FinishReason =
  | 'stop'
  | 'stop-sequence'
  | 'length'
  | 'tool-calls'
  | 'content-filter'
  | 'invalid-output'
  | 'steered'

export type ToolCallHead = {
  /** Unique within the generation; clients send the result under it. */
  callId: string
  name: string
  /** The namespace of the tool; `name` is the name within it. */
  namespace?: string
  /** `custom` calls carry free text, `function` calls carry JSON arguments. */
  form: 'function' | 'custom'
}

/**
 * A tool that the upstream (web search, code interpreter, …) or the gateway (remote MCP servers) ran, as
 * an item of the Responses format, the richest one. Upstream ids are removed.
 */
export type HostedToolItem = { readonly type: string; readonly [field: string]: unknown }

/** The events of hosted items that are forwarded as they are. */
export const hostedEventNames = [
  'image_generation_call.partial_image',
  'shell_call_command.added',
  'shell_call_command.delta',
  'shell_call_command.done',
  'shell_call_output_content.delta',
  'shell_call_output_content.done',
] as const

export type HostedEventName = (typeof hostedEventNames)[number]

export type Citation =
  | { kind: 'url'; url: string; title: string; startIndex: number; endIndex: number }
  /**
   * `container`: the file is in that container of a code interpreter, and cited from `index` on.
   * `quoted`: the passage, and its number (from 1) among the passages of the response.
   */
  | {
      kind: 'file'
      fileId: string
      filename: string
      index: number
      container?: { id: string; endIndex: number }
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
  /** The upstream reported none. */
  estimated?: true
}

/** Usage of which nothing but the two totals is known. */
export function usageOfTokens(inputTokens: number, outputTokens: number): Usage {
  return {
    inputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens,
    reasoningTokens: 0,
    totalTokens: inputTokens + outputTokens,
  }
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

/** The length of the text in a batch. */
export function textCharsOf(batch: EventBatch): number {
  let chars = 0
  for (const event of batch) if ('text' in event) chars += event.text.length
  // Frames without events are counted by their own length.
  if (batch.length === 0)
    for (const frame of batch.relay?.frames ?? []) chars += textOfFrame(frame).length
  return chars
}

/** The usage that the last event of a batch reports; null where it does not finish the generation. */
export function reportedUsage(batch: EventBatch): Usage | null {
  const last = batch.at(-1)
  return last?.type === 'finish' ? last.usage : null
}

/**
 * A batch whose final usage includes that of earlier attempts. Relayed frames contain the usage of the
 * last attempt and are not changed.
 */
export function withSpentUsage(batch: EventBatch, spent: Usage | null): EventBatch {
  const last = batch.at(-1)
  if (spent === null || last?.type !== 'finish' || batch.relay !== undefined) return batch
  return [...batch.slice(0, -1), { ...last, usage: addUsage(spent, last.usage) }]
}
