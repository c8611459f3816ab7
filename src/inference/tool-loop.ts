import { assert } from '#lib/assert.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { type RequestContext, withSignal } from '#lib/request-context.ts'
import { failureOf } from './attempt.ts'
import { endOfBlock, type FinishReason, type GenerationEvent } from './events.ts'
import type { Generate, GenerationJob } from './inference.ts'
import type { GenerationRequest, RequestItem } from './request.ts'
import { Budget, normaliseChoice, runConcurrently, withoutRequirement } from './tool-loop/budget.ts'
import type { HostedCall, HostedOutcome, HostedTools } from './tool-loop/hosted-tools.ts'
import { noteOutcome, startToolSpan } from './tool-loop/tool-span.ts'
import { callEvents, outcomeEvents, Turn } from './tool-loop/turn.ts'

export type ToolLoopLimits = {
  /** `max_tool_calls` of the request; null: not set. */
  readonly maxToolCalls: number | null
  /** The most hosted calls of one response. */
  readonly hostedCallsMax: number
  readonly hostedCallsAtOnceMax: number
  /** The most model runs of one response; the last run has no hosted tools. */
  readonly turnsMax: number
  /** The most text of one response including tool results. */
  readonly outputCharsMax: number
}

/**
 * Runs hosted tools: the model runs again with their results until it responds or calls a client tool.
 * All turns are one stream with one start, one finish and the total usage. The model is informed of a
 * failed tool; the response continues.
 *
 * Keeps the contract of `Generate`. Lists of tools do not count as output, so a failure of the first turn
 * can still become an HTTP status, unless an approved call has run.
 */
export function withHostedTools(
  generate: Generate,
  hosted: HostedTools,
  limits: ToolLoopLimits,
): Generate {
  return async function* generateWithTools(job) {
    const { controller, release } = followSignal(job.context.signal)
    const context = withSignal(job.context, controller.signal)
    const number = createNumbering()
    const budget = new Budget(job.request, limits.outputCharsMax)
    let last: GenerationEvent | undefined
    let held: GenerationEvent[] = []
    try {
      const loop: Loop = {
        generate,
        hosted,
        limits,
        budget,
        job: { ...job, context },
        run: createRunner(context),
        items: [...job.request.items],
        callsLeft: Math.min(limits.maxToolCalls ?? limits.hostedCallsMax, limits.hostedCallsMax),
        hasOutput: false,
      }
      for await (const events of runLoop(loop)) {
        held.push(...(hosted.show?.(events) ?? events).map(number))
        if (!loop.hasOutput || held.length === 0) continue
        budget.addText(held)
        last = held.at(-1)
        yield held
        held = []
      }
    } catch (error) {
      const failure = failureOf(error)
      if (last === undefined) throw failure
      yield [...endOfBlock(last), { type: 'error', error: failure }]
    } finally {
      controller.abort(new AppError('client_closed', 'The response has ended.'))
      release()
      hosted.close()
    }
  }
}

type Loop = {
  readonly generate: Generate
  readonly hosted: HostedTools
  readonly limits: ToolLoopLimits
  readonly budget: Budget
  readonly job: GenerationJob
  readonly run: (call: HostedCall, args: string) => Promise<HostedOutcome>
  /** The input of the next turn. */
  readonly items: RequestItem[]
  callsLeft: number
  /** Whether events must be emitted now, which excludes a retry. */
  hasOutput: boolean
}

/** Numbers blocks by their order in the response. */
function createNumbering(): (event: GenerationEvent) => GenerationEvent {
  let block = -1
  return (event) => {
    if (!('block' in event)) return event
    if (event.type.endsWith('-start')) block++
    return event.block === block ? event : { ...event, block }
  }
}

/** Runs calls; rejects as soon as the signal aborts, even if the tool ignores it. */
function createRunner(context: RequestContext): Loop['run'] {
  const { signal } = context
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  aborted.catch(() => {})
  return async (call, args) => {
    const span = startToolSpan(context, call, args)
    const own = span === null ? context : { ...context, trace: span }
    try {
      const outcome = await Promise.race([call.run(args, own), aborted])
      if (span !== null) noteOutcome(span, outcome)
      return outcome
    } catch (error) {
      const { kind, message } = failureOf(error)
      span?.fail(kind, message)
      if (signal.aborted) throw error
      return call.refuse(args, 'The tool failed.')
    } finally {
      span?.end()
    }
  }
}

type Events = AsyncGenerator<readonly GenerationEvent[], void, void>

/** The result of a call for the model; null if the client has to act first. */
type ToolResult = { readonly callId: string; readonly result: string | null }

async function* runLoop(loop: Loop): Events {
  const { limits, budget } = loop
  yield [{ type: 'generation-start' }]
  yield* runOpening(loop)
  for (let turnCount = 1; ; turnCount++) {
    const isLast = turnCount >= limits.turnsMax
    const turn = new Turn(loop.hosted)
    const isFirst = turnCount === 1
    const job = isFirst ? loop.job : { ...loop.job, continues: true }
    yield* runModel(loop, turn, { ...job, request: requestOf(loop, { isFirst, isLast }) })
    const ending = endingOf(turn)
    budget.addUsage(ending.usage)
    const isTruncated = ending.reason !== 'stop' && ending.reason !== 'tool-calls'
    const results: ToolResult[] = []
    yield* runCalls(loop, { turn, isTruncated, isLast, results })
    const wantsMore = !isTruncated && !isLast && turn.clientCalls === 0 && results.length > 0
    const continues = wantsMore && results.every(({ result }) => result !== null)
    const hasTokensLeft = (budget.outputTokensLeft ?? 1) > 0
    if (!continues || !hasTokensLeft) {
      const reason = continues ? 'length' : reasonOf(turn, ending.reason, isTruncated)
      yield [{ ...ending, reason, usage: budget.usage }]
      return
    }
    loop.items.push(...turn.items, ...results.flatMap(toItems))
  }
}

/** Runs the opening steps concurrently, and emits them in order. */
async function* runOpening(loop: Loop): Events {
  const steps = loop.hosted.opening
  const outcomes = runConcurrently(steps, loop.limits.hostedCallsAtOnceMax, (step) =>
    admit(loop, step, null),
  )
  loop.hasOutput = steps.some(({ callId }) => callId !== null)
  for (const [at, { call, args, callId }] of steps.entries()) {
    yield callEvents(call, args)
    const outcome = await outcomes[at]
    if (outcome === undefined) continue
    yield outcomeEvents(outcome)
    if (callId !== null) putResult(loop.items, { callId, result: outcome.result })
  }
}

async function* runModel(loop: Loop, turn: Turn, job: GenerationJob): Events {
  for await (const batch of loop.generate(job)) {
    const emitted = turn.push(batch)
    loop.hasOutput ||= emitted.length > 0
    if (emitted.length > 0) yield emitted
  }
  loop.hasOutput = true
}

/** Runs the hosted calls of a turn concurrently, and emits them in order with the held events. */
async function* runCalls(
  loop: Loop,
  given: { turn: Turn; isTruncated: boolean; isLast: boolean; results: ToolResult[] },
): Events {
  const refusal = given.isTruncated ? truncatedReason : given.isLast ? tooManyReason : null
  const complete = given.turn.calls.filter(({ isComplete }) => isComplete)
  const concurrencyMax = loop.job.request.parallelToolCalls ? loop.limits.hostedCallsAtOnceMax : 1
  const outcomes = runConcurrently(complete, concurrencyMax, (call) => admit(loop, call, refusal))
  let events: GenerationEvent[] = []
  for (const entry of given.turn.held) {
    if (!('callId' in entry)) {
      events.push(entry)
      continue
    }
    const outcome = outcomes[complete.indexOf(entry)]
    if (outcome === undefined) {
      if (entry.isShown) events.push({ type: 'hosted-tool-end', block: 0, item: null })
      continue
    }
    if (!entry.isShown) events.push(...callEvents(entry.call, entry.args))
    if (events.length > 0) yield events
    const ended = await outcome
    events = outcomeEvents(ended)
    given.results.push({ callId: entry.callId, result: ended.result })
  }
  if (events.length > 0) yield events
}

const truncatedReason = 'The tool was not run, because the response was truncated.'
const tooManyReason =
  'The tool was not run: this response may not call any more tools. Answer without.'

/** Runs a call, or refuses it. */
async function admit(
  loop: Loop,
  { call, args }: { readonly call: HostedCall; readonly args: string },
  refusal: string | null,
): Promise<HostedOutcome> {
  if (!call.isCounted) return loop.run(call, args)
  if (refusal !== null) return call.refuse(args, refusal)
  if (loop.callsLeft === 0) return call.refuse(args, tooManyReason)
  loop.callsLeft--
  return loop.run(call, args)
}

function requestOf(
  { job, items, hosted, budget, callsLeft }: Loop,
  { isFirst, isLast }: { isFirst: boolean; isLast: boolean },
): GenerationRequest {
  const { request } = job
  const hasHostedTools = callsLeft > 0 && !isLast
  const tools = hasHostedTools ? [...request.tools, ...hosted.definitions()] : request.tools
  const wanted = isFirst ? request.toolChoice : withoutRequirement(request.toolChoice)
  const choice = normaliseChoice(hasHostedTools ? hosted.resolveToolChoice(wanted) : wanted)
  return {
    ...request,
    items: [...items],
    tools,
    toolChoice:
      tools.length > 0 || request.native !== undefined ? choice : withoutRequirement(choice),
    sampling: { ...request.sampling, maxOutputTokens: budget.outputTokensLeft },
  }
}

function endingOf(turn: Turn) {
  const ending = turn.ending
  if (ending === null) throw new Error('a generation ended without a terminal event')
  if (ending.type === 'error') throw ending.error
  return ending
}

function reasonOf(turn: Turn, reason: FinishReason, isTruncated: boolean): FinishReason {
  if (isTruncated || turn.calls.length === 0) return reason
  return turn.clientCalls > 0 ? 'tool-calls' : 'stop'
}

function toItems({ callId, result }: ToolResult): RequestItem[] {
  if (result === null) return []
  return [
    { type: 'tool-result', callId, form: 'function', parts: [{ type: 'text', text: result }] },
  ]
}

/** Inserts a result after the calls of the same turn. */
function putResult(items: RequestItem[], result: ToolResult): void {
  const { callId } = result
  let at = items.findLastIndex((item) => item.type === 'tool-call' && item.callId === callId)
  assert(at !== -1, `there is no call ${callId} for this result`)
  while (items[at]?.type === 'tool-call') at++
  items.splice(at, 0, ...toItems(result))
}
