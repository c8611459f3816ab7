import { assert } from '#lib/assert.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { withSignal } from '#lib/request-context.ts'
import { failureOf } from './attempt.ts'
import type { FinishReason, GenerationEvent } from './events.ts'
import { endOfBlock } from './grammar.ts'
import type { Generate, GenerationJob } from './inference.ts'
import type { GenerationRequest, RequestItem } from './request.ts'
import { boundBy, createSpending, type Spending, withoutDemand } from './tool-loop/budget.ts'
import type { HostedCall, HostedOutcome, HostedTools } from './tool-loop/hosted-tools.ts'
import { runAtOnce } from './tool-loop/run-at-once.ts'
import { createTurn, showCall, showOutcome, type Turn } from './tool-loop/turn.ts'

export type ToolLoopLimits = {
  /** `max_tool_calls` of the request; null: the caller set none. */
  readonly maxToolCalls: number | null
  /** The most hosted calls of one response, whatever the caller set. */
  readonly hostedCallsMax: number
  readonly hostedCallsAtOnceMax: number
  /** The most runs of the model in one response; the last of them is offered no hosted tool. */
  readonly turnsMax: number
  /** The most text of one response, in characters, with what its tools gave. */
  readonly outputCharsMax: number
}

/**
 * Generations whose hosted tools run here: the model is run again with each result until it answers,
 * or calls a tool that only its caller can run, and all of it is one stream with one start, one
 * finish and the usage of all turns. A tool that fails is told to the model and ends nothing.
 *
 * It keeps the contract of `Generate`. What only lists tools counts as no output, so a first turn
 * that fails can still become an HTTP status; once a tool of an approved call has run, it cannot.
 */
export function withHostedTools(
  generate: Generate,
  hosted: HostedTools,
  limits: ToolLoopLimits,
): Generate {
  return async function* generateWithTools(job) {
    const { controller, release } = followSignal(job.context.signal)
    const { signal } = controller
    const number = createNumbering()
    const spending = createSpending(job.request, limits.outputCharsMax)
    let last: GenerationEvent | undefined
    let held: GenerationEvent[] = []
    try {
      const loop: Loop = {
        generate,
        hosted,
        limits,
        spending,
        job: { ...job, context: withSignal(job.context, signal) },
        run: createRunner(signal),
        items: [...job.request.items],
        callsLeft: Math.min(limits.maxToolCalls ?? limits.hostedCallsMax, limits.hostedCallsMax),
        hasOutput: false,
      }
      for await (const events of runLoop(loop)) {
        held.push(...(hosted.show?.(events) ?? events).map(number))
        if (!loop.hasOutput || held.length === 0) continue
        spending.addText(held)
        last = held.at(-1)
        yield held
        held = []
      }
    } catch (error) {
      const failure = failureOf(error)
      if (last === undefined) throw failure
      yield [...endOfBlock(last), { type: 'error', error: failure }]
    } finally {
      controller.abort(new AppError('client_closed', 'The response is over.'))
      release()
      hosted.close()
    }
  }
}

type Loop = {
  readonly generate: Generate
  readonly hosted: HostedTools
  readonly limits: ToolLoopLimits
  readonly spending: Spending
  readonly job: GenerationJob
  readonly run: (call: HostedCall, args: string) => Promise<HostedOutcome>
  /** The input of the next turn. */
  readonly items: RequestItem[]
  callsLeft: number
  /** Whether there is something that must not be taken back. */
  hasOutput: boolean
}

/** Numbers blocks by their order in the whole response. */
function createNumbering(): (event: GenerationEvent) => GenerationEvent {
  let block = -1
  return (event) => {
    if (!('block' in event)) return event
    if (event.type.endsWith('-start')) block++
    return event.block === block ? event : { ...event, block }
  }
}

/** Runs work so that it is over as soon as the signal aborts, whatever the tool makes of that. */
function createRunner(signal: AbortSignal): Loop['run'] {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  aborted.catch(() => {})
  return async (call, args) => {
    try {
      return await Promise.race([call.run(args, signal), aborted])
    } catch (error) {
      if (signal.aborted) throw error
      return call.refuse(args, 'The tool failed.')
    }
  }
}

type Events = AsyncGenerator<readonly GenerationEvent[], void, void>

/** What the model is told of a call; null where the caller has to act first. */
type ToolResult = { readonly callId: string; readonly result: string | null }

async function* runLoop(loop: Loop): Events {
  const { limits, spending } = loop
  yield [{ type: 'generation-start' }]
  yield* runOpening(loop)
  for (let turnCount = 1; ; turnCount++) {
    const isLast = turnCount >= limits.turnsMax
    const turn = createTurn(loop.hosted)
    yield* runModel(loop, turn, requestOf(loop, { isFirst: turnCount === 1, isLast }))
    const ending = endingOf(turn)
    spending.addUsage(ending.usage)
    const isCut = ending.reason !== 'stop' && ending.reason !== 'tool-calls'
    const results: ToolResult[] = []
    yield* runCalls(loop, { turn, isCut, isLast, results })
    const wantsMore = !isCut && !isLast && turn.callerCalls() === 0 && results.length > 0
    const goesOn = wantsMore && results.every(({ result }) => result !== null)
    const hasRoom = (spending.outputTokensLeft() ?? 1) > 0
    if (!goesOn || !hasRoom) {
      const reason = goesOn ? 'length' : reasonOf(turn, ending.reason, isCut)
      yield [{ ...ending, reason, usage: spending.usage() }]
      return
    }
    loop.items.push(...turn.items(), ...results.flatMap(toItems))
  }
}

/** Does at once what is to be done first, and shows it in order. */
async function* runOpening(loop: Loop): Events {
  const steps = loop.hosted.opening
  const outcomes = runAtOnce(
    steps.map(
      ({ call, args }) =>
        () =>
          admit(loop, { call, args, refusal: null }),
    ),
    loop.limits.hostedCallsAtOnceMax,
  )
  loop.hasOutput = steps.some(({ callId }) => callId !== null)
  for (const [at, { call, args, callId }] of steps.entries()) {
    yield showCall(call, args)
    const outcome = await outcomes[at]
    if (outcome === undefined) continue
    yield showOutcome(outcome)
    if (callId !== null) putResult(loop.items, { callId, result: outcome.result })
  }
}

async function* runModel(loop: Loop, turn: Turn, request: GenerationRequest): Events {
  // Nothing of a turn was sent before its first output, so it may be tried again.
  const job = { ...loop.job, request, committed: () => false }
  for await (const batch of loop.generate(job)) {
    const shown = turn.take(batch)
    loop.hasOutput ||= shown.length > 0
    if (shown.length > 0) yield shown
  }
  loop.hasOutput = true
}

/** Runs the hosted calls of a turn at once, and shows them in order with all that was held back. */
async function* runCalls(
  loop: Loop,
  given: { turn: Turn; isCut: boolean; isLast: boolean; results: ToolResult[] },
): Events {
  const refusal = given.isCut ? cutOff : given.isLast ? tooMany : null
  const complete = given.turn.calls().filter(({ isComplete }) => isComplete)
  const outcomes = runAtOnce(
    complete.map(
      ({ call, args }) =>
        () =>
          admit(loop, { call, args, refusal }),
    ),
    loop.job.request.parallelToolCalls ? loop.limits.hostedCallsAtOnceMax : 1,
  )
  let events: GenerationEvent[] = []
  for (const entry of given.turn.held()) {
    if (!('callId' in entry)) {
      events.push(entry)
      continue
    }
    const outcome = outcomes[complete.indexOf(entry)]
    if (outcome === undefined) {
      if (entry.isShown) events.push({ type: 'hosted-tool-end', block: 0, item: null })
      continue
    }
    if (!entry.isShown) events.push(...showCall(entry.call, entry.args))
    if (events.length > 0) yield events
    const ended = await outcome
    events = showOutcome(ended)
    given.results.push({ callId: entry.callId, result: ended.result })
  }
  if (events.length > 0) yield events
}

const cutOff = 'The tool was not run, because the answer was cut off.'
const tooMany = 'The tool was not run: this response may not call any more tools. Answer without.'

/** Runs a call, or says why not. */
async function admit(
  loop: Loop,
  { call, args, refusal }: { call: HostedCall; args: string; refusal: string | null },
): Promise<HostedOutcome> {
  if (!call.isCounted) return loop.run(call, args)
  if (refusal !== null) return call.refuse(args, refusal)
  if (loop.callsLeft === 0) return call.refuse(args, tooMany)
  loop.callsLeft--
  return loop.run(call, args)
}

function requestOf(
  { job, items, hosted, spending, callsLeft }: Loop,
  { isFirst, isLast }: { isFirst: boolean; isLast: boolean },
): GenerationRequest {
  const { request } = job
  const isOffered = callsLeft > 0 && !isLast
  const tools = isOffered ? [...request.tools, ...hosted.definitions()] : request.tools
  const wanted = isFirst ? request.toolChoice : withoutDemand(request.toolChoice)
  const choice = boundBy(isOffered ? hosted.resolveToolChoice(wanted) : wanted)
  return {
    ...request,
    items: [...items],
    tools,
    toolChoice: tools.length > 0 ? choice : withoutDemand(choice),
    sampling: { ...request.sampling, maxOutputTokens: spending.outputTokensLeft() },
  }
}

function endingOf(turn: Turn) {
  const ending = turn.ending()
  if (ending === null) throw new Error('a generation ended without a terminal event')
  if (ending.type === 'error') throw ending.error
  return ending
}

function reasonOf(turn: Turn, reason: FinishReason, isCut: boolean): FinishReason {
  if (isCut || turn.calls().length === 0) return reason
  return turn.callerCalls() > 0 ? 'tool-calls' : 'stop'
}

function toItems({ callId, result }: ToolResult): RequestItem[] {
  if (result === null) return []
  return [
    { type: 'tool-result', callId, form: 'function', parts: [{ type: 'text', text: result }] },
  ]
}

/** Behind the calls that were made together with this one. */
function putResult(items: RequestItem[], result: ToolResult): void {
  const { callId } = result
  let at = items.findLastIndex((item) => item.type === 'tool-call' && item.callId === callId)
  assert(at !== -1, `there is no call ${callId} for this result`)
  while (items[at]?.type === 'tool-call') at++
  items.splice(at, 0, ...toItems(result))
}
