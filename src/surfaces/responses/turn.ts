import { applyAgent, withAgentTools } from '#agents/apply.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import type { HostedToolbox } from '#hosted-tools/hosted-tools.ts'
import type { FrameSource } from '#http/event-stream.ts'
import type { Generations, Target } from '#inference/generate.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { withSingleCall } from '#inference/single-call.ts'
import { withCheckedOutput } from '#inference/structured-output.ts'
import { type ToolLoopLimits, withHostedTools } from '#inference/tool-loop.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import type { StoredItem } from '#responses/response.ts'
import type { ResponseRuns, RunPlan } from '#responses/runs.ts'
import type { QueuedResponse, ResponseHead } from '#responses/stored.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { createSeals } from '#sealing/seals.ts'
import type { Log } from '#telemetry/log.ts'
import { withCompaction } from './compaction.ts'
import { runDirectly } from './direct-turn.ts'
import {
  type ConnectionMemory,
  type History,
  type HistorySources,
  loadHistory,
  readStateRequest,
  type StateRequest,
} from './history.ts'
import { type ParsedCreate, parseCreateResponse } from './parse.ts'
import { queueTurn, readQueued } from './queued-turn.ts'
import { createResponseRenderer, type RenderedResponse, type ResponseRenderer } from './render.ts'
import { runStored } from './stored-turn.ts'
import { warmUp } from './warm-up.ts'

/** One request for a response, over whatever connection it came. */
export type Turns = {
  /** Throws an `AppError` for a request that cannot be followed. */
  begin(body: unknown, caller: Caller): Promise<Turn>
  /** What a model would be given, without asking it. */
  read(body: unknown, caller: Caller): Promise<Pick<Plan, 'request' | 'targets'>>
}

export type Caller = {
  readonly principal: Principal
  readonly requestId: string
  /** Aborts when the connection is gone. */
  readonly signal: AbortSignal
  /** Of a connection that carries several requests; such a one is always streamed. */
  readonly memory?: ConnectionMemory
}

export type Turn = {
  readonly id: string
  readonly streams: boolean
  /** The answer as SSE frames, without the closing `[DONE]`. Either this or `answer`, once. */
  source(): FrameSource<unknown>
  /** The answer without streaming; throws where the generation fails. */
  answer(): Promise<RenderedResponse>
  /** What stands before the input of a turn that follows this one; final when this one is over. */
  context(): readonly StoredItem[]
}

export type TurnDeps = {
  modelResolver: Pick<ModelResolver, 'resolve'>
  generations: Generations
  hostedTools: HostedToolbox
  runs: ResponseRuns
  history: HistorySources
  sealer: Sealer
  config: Pick<Config, 'limits' | 'responses'>
  log: Log
  now: () => Date
}

/** A request that was understood: everything that it takes to run it. */
export type Plan = {
  readonly head: ResponseHead
  readonly parsed: ParsedCreate
  /** What the model is asked: where an agent is called, with what the agent adds. */
  readonly request: GenerationRequest
  readonly targets: readonly Target[]
  readonly history: History
  readonly renderer: ResponseRenderer
  readonly generate: RunPlan['generate']
}

/** What a plan is made for: a caller, or a request that waited. */
type PlanFor = Pick<Caller, 'requestId' | 'memory'> & {
  readonly principal: Pick<Principal, 'userId' | 'groups'>
  readonly id: string
  readonly createdAt: Date
  readonly framesBefore: number
}

export function createTurns(deps: TurnDeps): Turns {
  deps.runs.processQueue((queued) => prepareQueued(deps, queued))
  const plan = (body: unknown, caller: Caller) =>
    planTurn(deps, body, {
      ...caller,
      id: newId('resp_'),
      createdAt: deps.now(),
      framesBefore: 0,
    })
  return {
    read: plan,
    async begin(body, caller) {
      const planned = await plan(body, caller)
      logIgnored(deps.log, planned.parsed, caller.requestId)
      if (planned.head.background) return queueTurn(deps, { plan: planned, body, caller })
      const run = planned.parsed.echo.store ? runStored : runDirectly
      return run(deps, planned, caller)
    },
  }
}

async function prepareQueued(deps: TurnDeps, queued: QueuedResponse): Promise<RunPlan> {
  const { body, groups, requestId } = readQueued(deps.sealer, queued)
  return planTurn(deps, body, {
    principal: { userId: queued.ownerId, groups },
    requestId,
    id: queued.id,
    createdAt: queued.createdAt,
    framesBefore: queued.segment.last + 1,
  })
}

async function planTurn(deps: TurnDeps, body: unknown, given: PlanFor): Promise<Plan> {
  const { userId: ownerId } = given.principal
  const { limits } = deps.config
  const state = readStateRequest(body)
  const isRemembered = given.memory?.find(state.previousResponseId ?? '') !== undefined
  const history = await loadHistory(deps.history, { ownerId, state, memory: given.memory })
  const seals = createSeals(deps.sealer, ownerId)
  const parsed = parseCreateResponse(body, { limits, history, seals })
  const { echo } = parsed
  if (echo.background && given.memory !== undefined) {
    throw new AppError('invalid_request', 'A response in the background is asked for by POST.', {
      param: 'background',
    })
  }
  const link = linkOf(parsed, history, { state, isRemembered })
  if (echo.store) refuseTooLarge(link.input, deps.config.responses.storedCharsMax)
  const { model, agent } = await resolveModel(deps, parsed.request, given)
  const request = applyAgent(parsed.request, agent)
  const readWhole = !parsed.stream && given.memory === undefined
  const checked = withCheckedOutput(withSingleCall(deps.generations.generate))
  const hosted = await deps.hostedTools.open(withAgentTools(parsed.hosted, agent), {
    caller: given.principal,
    tools: request.tools,
  })
  const tooled =
    hosted === null ? checked : withHostedTools(checked, hosted, loopLimits(limits, echo))
  const generate = withCompaction(tooled, {
    summarise: deps.generations.generate,
    seal: seals.compaction,
    rules: parsed.compaction,
    contextWindow: model.contextWindow,
  })
  const { id, createdAt, framesBefore, requestId } = given
  return {
    parsed,
    request,
    targets: model.targets,
    history: link.history,
    head: {
      id,
      ownerId,
      background: echo.background,
      createdAt,
      previousResponseId: link.previousResponseId,
      conversationId: state.conversationId,
      input: link.input,
    },
    renderer: createResponseRenderer({
      id,
      createdAt,
      echo,
      includeSealed: parsed.includeSealed,
      includeSearchResults: parsed.includeSearchResults,
      reasoningSeal: seals.reasoning,
      // A stored response has a log of its frames, whoever asked for them.
      stream: parsed.stream || echo.store || given.memory !== undefined,
      framesBefore,
      now: deps.now,
    }),
    generate: (control) =>
      parsed.isWarmUp && given.memory !== undefined
        ? warmUp()
        : generate({ request, targets: model.targets, requestId, buffered: readWhole, ...control }),
  }
}

async function resolveModel(
  { modelResolver }: Pick<TurnDeps, 'modelResolver'>,
  request: GenerationRequest,
  { principal }: PlanFor,
): ReturnType<ModelResolver['resolve']> {
  const resolved = await modelResolver.resolve(principal, request.model, request.promptCacheKey)
  if (resolved.model.mode === 'generate') return resolved
  throw new AppError('invalid_request', `The model "${request.model}" does not generate text.`, {
    param: 'model',
  })
}

type Link = Pick<ResponseHead, 'previousResponseId' | 'input'> & { history: History }

/**
 * How a request follows what was before it. What only its connection remembers becomes part of the
 * input of a response that is stored, whose chain would have a gap otherwise.
 */
function linkOf(
  { echo, storedInput }: ParsedCreate,
  history: History,
  { state, isRemembered }: { state: StateRequest; isRemembered: boolean },
): Link {
  const { previousResponseId } = state
  if (!echo.store || !isRemembered) return { previousResponseId, input: storedInput, history }
  return {
    previousResponseId: null,
    input: [...history.items, ...storedInput],
    history: { ...history, items: [] },
  }
}

function loopLimits(limits: Config['limits'], echo: ParsedCreate['echo']): ToolLoopLimits {
  return { ...limits, maxToolCalls: echo.max_tool_calls, turnsMax: limits.hostedTurnsMax }
}

function refuseTooLarge(input: readonly StoredItem[], charsMax: number): void {
  const chars = input.reduce((sum, item) => sum + JSON.stringify(item).length, 0)
  if (chars <= charsMax) return
  throw new AppError(
    'request_too_large',
    `The input is longer than ${charsMax} characters, the most that is stored; send store: false.`,
    { param: 'input' },
  )
}

/** How much of what a caller sent and we left out is logged: so many words, of so many characters. */
const ignoredWordsMax = 20
const ignoredCharsMax = 64

/** Tools and items that no upstream takes are no error, but whoever runs this may wonder. */
function logIgnored(log: Log, parsed: ParsedCreate, requestId: string): void {
  const { ignoredTools, ignoredItems } = parsed
  if (ignoredTools.length + ignoredItems.length === 0) return
  const clip = (words: readonly string[]) =>
    words.slice(0, ignoredWordsMax).map((word) => word.slice(0, ignoredCharsMax))
  log.info('parts of a request were left out', {
    request_id: requestId,
    tools: clip(ignoredTools),
    items: clip(ignoredItems),
  })
}
