import type { GenerationEvent, HostedToolItem } from '#inference/events.ts'
import type { FunctionTool, ToolChoice } from '#inference/request.ts'
import type { RequestContext } from '#lib/request-context.ts'

/**
 * The tools of one request that the gateway runs. The loop passes them to the model as functions, runs
 * the calls and emits them as items. Implementations define the work and the items. No resources are held
 * before the loop starts.
 */
export type HostedTools = {
  /** Steps before the first model run, in the order of their items. */
  readonly opening: readonly OpeningStep[]
  /** The functions for the model, with names distinct from those of client tools; known after the opening. */
  definitions(): readonly FunctionTool[]
  /** The tool choice of the request, in the names of `definitions`. */
  resolveToolChoice(choice: ToolChoice): ToolChoice
  /** A call of one of `definitions`, by name; null for any other name. */
  call(name: string): HostedCall | null
  /**
   * Transforms the events for the client; the model's input keeps its original output. By default the
   * client receives all events.
   */
  readonly show?: (events: readonly GenerationEvent[]) => readonly GenerationEvent[]
  /** Called when the loop has ended and every call was aborted. */
  close(): void
}

/** Work without a model call: a list of tools, or an approved call. */
export type OpeningStep = {
  readonly call: HostedCall
  /** JSON text; empty without arguments. */
  readonly args: string
  /** The call in the input that this result belongs to, if any. */
  readonly callId: string | null
}

/** One unit of work, with one item. */
export type HostedCall = {
  /** Whether it counts towards `max_tool_calls`. */
  readonly isCounted: boolean
  /** Whether its item streams the arguments. */
  readonly streamsArguments: boolean
  /** The stages before the work is done: `in_progress`, `searching`. */
  readonly stages: readonly string[]
  /** The item at its start. `args` is empty if streamed, otherwise complete. */
  begin(args: string): HostedToolItem
  /** Runs the work. A failure of the tool is an outcome; rejects when `context.signal` aborts. */
  run(args: string, context: RequestContext): Promise<HostedOutcome>
  /** The outcome when the work is not done; `reason` is a sentence. */
  refuse(args: string, reason: string): HostedOutcome
}

export type HostedOutcome = {
  /** The final item. */
  readonly item: HostedToolItem
  /** The final stage, for item types with stages: `completed`, `failed`. */
  readonly stage: string | null
  /** The result for the model; null if the client has to act first, which ends the response. */
  readonly result: string | null
}
