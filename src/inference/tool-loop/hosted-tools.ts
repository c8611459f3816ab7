import type { GenerationEvent, HostedToolItem } from '#inference/events.ts'
import type { FunctionTool, ToolChoice } from '#inference/request.ts'

/**
 * The tools of one request that run on this side of the caller. The loop offers them to the model as
 * functions, runs what the model calls and shows it as items; what the tools do, and what their
 * items look like, is theirs alone. Nothing is held open before the loop begins.
 */
export type HostedTools = {
  /** What is done before the model is asked, in the order in which it is shown. */
  readonly opening: readonly OpeningStep[]
  /** What the model may call, under names that no tool of the caller bears; known after the opening. */
  definitions(): readonly FunctionTool[]
  /** The tool choice of the request, in the names of `definitions`. */
  resolveToolChoice(choice: ToolChoice): ToolChoice
  /** A call of one of `definitions`, by name; null for any other name. */
  call(name: string): HostedCall | null
  /**
   * What the caller gets to see of the events of the response, which the model goes on to be told as
   * it wrote them; left out where that is all of it.
   */
  readonly show?: (events: readonly GenerationEvent[]) => readonly GenerationEvent[]
  /** The loop is over, and every call was told to end. */
  close(): void
}

/** Work that nobody has to ask the model for: a list to show, a call that was approved. */
export type OpeningStep = {
  readonly call: HostedCall
  /** JSON text; empty where the work takes no arguments. */
  readonly args: string
  /** The call in the input that waits for this result, if there is one. */
  readonly callId: string | null
}

/** One piece of work, shown as one item. */
export type HostedCall = {
  /** Whether it is a tool that runs, so that it counts against `max_tool_calls`. */
  readonly isCounted: boolean
  /** Whether its item shows the arguments while the model writes them. */
  readonly streamsArguments: boolean
  /** What the item goes through before its work is done: `in_progress`, `searching`. */
  readonly stages: readonly string[]
  /** The item as it begins. `args` is empty where they are streamed, otherwise complete. */
  begin(args: string): HostedToolItem
  /** Does the work. A failure of the tool is an outcome; it rejects when the signal aborts. */
  run(args: string, signal: AbortSignal): Promise<HostedOutcome>
  /** The outcome where the work is not done, for this reason: a sentence. */
  refuse(args: string, reason: string): HostedOutcome
}

export type HostedOutcome = {
  /** The item as it ended. */
  readonly item: HostedToolItem
  /** The stage that it ended in, if its type has any: `completed`, `failed`. */
  readonly stage: string | null
  /** What the model is told; null where the caller has to act first, which ends the response. */
  readonly result: string | null
}
