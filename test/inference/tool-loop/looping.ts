import type { GenerationEvent, HostedToolItem } from '#inference/events.ts'
import type { GenerationJob } from '#inference/inference.ts'
import type { FunctionTool, GenerationRequest } from '#inference/request.ts'
import type { HostedCall, HostedTools, OpeningStep } from '#inference/tool-loop/hosted-tools.ts'
import { type ToolLoopLimits, withHostedTools } from '#inference/tool-loop.ts'
import type { Target } from '#inference/upstream.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'
import { start } from '#test/support/generations.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { chatStream } from '#test/support/recordings.ts'

/** The loop between a real upstream and tools of the test. */

const limits: ToolLoopLimits = {
  maxToolCalls: null,
  hostedCallsMax: 64,
  hostedCallsAtOnceMax: 8,
  turnsMax: 8,
  outputCharsMax: 65_536,
}

type Options = {
  targets: Target[]
  hosted: HostedTools
  limits?: Partial<ToolLoopLimits>
  request?: Partial<GenerationRequest>
  signal?: AbortSignal
}

/** The events of one response, their order checked, and what each turn settled. */
export function loop({ targets, hosted, request = {}, signal, ...options }: Options) {
  const { inference, records } = start()
  const job: GenerationJob = {
    request: makeRequest(request),
    targets,
    context: makeRequestContext(signal),
  }
  const generate = withHostedTools(inference.generate, hosted, { ...limits, ...options.limits })
  return { batches: checkEvents(generate(job)), records, inference }
}

export async function loopEvents(options: Options): Promise<GenerationEvent[]> {
  return (await Array.fromAsync(loop(options).batches)).flat()
}

type Made = Partial<HostedCall> & { result?: string | null }

/** A tool of the made-up type `note_call`, which answers with its own arguments. */
export function note(made: Made = {}): HostedCall {
  const begin = (args: string): HostedToolItem => ({ type: 'note_call', args })
  const end = (args: string, more: object = {}) => ({
    item: { ...begin(args), ...more },
    stage: 'completed',
    result: made.result === undefined ? `noted ${args}` : made.result,
  })
  return {
    isCounted: true,
    streamsArguments: true,
    stages: ['in_progress'],
    begin,
    run: async (args) => end(args),
    refuse: (args, reason) => ({ ...end(args, { refused: reason }), result: reason }),
    ...made,
  }
}

/** Tools by the names under which they are offered. */
export function hostedTools(
  tools: Readonly<Record<string, () => HostedCall>>,
  more: { opening?: readonly OpeningStep[]; closed?: () => void } = {},
): HostedTools {
  return {
    opening: more.opening ?? [],
    definitions: () => Object.keys(tools).map(functionTool),
    resolveToolChoice: (choice) => choice,
    call: (name) => tools[name]?.() ?? null,
    close: () => more.closed?.(),
  }
}

export function functionTool(name: string): FunctionTool {
  return { type: 'function', name, description: null, parameters: null, strict: false }
}

const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 }
const chunk = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
})

type Call = readonly [id: string, name: string, args: string]

/** A chat answer that calls these tools, its arguments in two pieces. */
export function calling(...calls: readonly Call[]): string {
  const pieces = calls.flatMap(([id, name, args], index) => [
    chunk({
      tool_calls: [
        { index, id, type: 'function', function: { name, arguments: args.slice(0, 1) } },
      ],
    }),
    chunk({ tool_calls: [{ index, function: { arguments: args.slice(1) } }] }),
  ])
  return chatStream([...pieces, chunk({}, 'tool_calls'), { choices: [], usage }])
}

export function saying(text: string, finish = 'stop'): string {
  return chatStream([chunk({ content: text }), chunk({}, finish), { choices: [], usage }])
}
