import { applyAgent, withAgentTools } from '#agents/apply.ts'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import { type HostedToolbox, usesHostedTools } from '#hosted-tools/hosted-tools.ts'
import type { FrameSource } from '#http/event-stream.ts'
import { withForcedCall } from '#inference/forced-call.ts'
import type { EventBatches, Generate, Inference } from '#inference/inference.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { withSingleCall } from '#inference/single-call.ts'
import { withCheckedOutput } from '#inference/structured-output.ts'
import { type ToolLoopLimits, withHostedTools } from '#inference/tool-loop.ts'
import type { Target } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { type RequestContext, withSignal } from '#lib/request-context.ts'
import type { Model } from '#models/catalogue.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import type { PrepareQueued } from '#responses/background-queue.ts'
import type { StoredItem } from '#responses/response.ts'
import type { ResponseRuns } from '#responses/runs.ts'
import type { ResponseHead } from '#responses/stored.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'
import { logIgnored } from '#surfaces/log-ignored.ts'
import { planNative, searchesHere, type WebSearchConfig } from '#surfaces/native-tools.ts'
import { holdsFiles, type RequestFiles } from '#surfaces/request-files.ts'
import { runGeneration } from '#surfaces/run-generation.ts'
import type { Log } from '#telemetry/log.ts'
import { withCollectionIds } from './collection-ids.ts'
import { withCompaction } from './compaction.ts'
import {
  type History,
  type HistorySources,
  linkHistory,
  loadHistory,
  noHistory,
  readHistoryRequest,
  refersToHistory,
} from './history.ts'
import { type ParsedCreate, parseCreateResponse } from './parse.ts'
import { openQueuedRequest } from './queued-request.ts'
import { ResponseRenderer } from './render.ts'
import type { WireResponse } from './schema/response-object.ts'
import { generateTurn, type SocketTurn } from './socket/turn.ts'
import { enqueueResponse, startStored } from './start-response.ts'
import { requireStorable } from './stored-item.ts'

/** Creates responses, for HTTP and WebSocket connections alike. */
export type ResponseService = {
  /** Throws an `AppError` for an invalid request. */
  create(body: unknown, context: RequestContext, turn?: SocketTurn): Promise<RunningResponse>
  /** The request that the model would get; the model is not called. */
  resolve(
    body: unknown,
    context: RequestContext,
  ): Promise<Pick<ResponsePlan, 'request' | 'targets' | 'modelId' | 'agentId'>>
  readonly planQueued: PrepareQueued
}

export type RunningResponse = {
  readonly id: string
  readonly streams: boolean
  readonly modelId: string
  /** The SSE frames, without the final `[DONE]`. Either this or `result` is called, once. */
  source(): FrameSource<unknown>
  /** The complete response; throws if the generation fails. */
  result(): Promise<WireResponse>
  /** The history for a response that continues this one; final when this one has ended. */
  history(): readonly StoredItem[]
  /** The object so far. */
  current(): WireResponse
  /** The number of its latest event. */
  sequence(): number
}

export type ResponseServiceDeps = {
  auth: Pick<Auth, 'currentPrincipal'>
  modelResolver: Pick<ModelResolver, 'resolve' | 'resolveKnown'>
  inference: Pick<Inference, 'generate'>
  hostedTools: HostedToolbox
  requestFiles: RequestFiles
  collections: Pick<Collections, 'resolve'>
  runs: ResponseRuns
  history: HistorySources
  sealer: Sealer
  config: Pick<Config, 'limits' | 'responses' | 'upstream' | 'unsupportedTools'> & WebSearchConfig
  log: Log
  now: () => Date
}

/** A validated request with everything that is needed to run it. */
export type ResponsePlan = {
  readonly head: ResponseHead
  readonly streams: boolean
  readonly parsed: ParsedCreate
  /** The request to the model, with the additions of an agent. */
  readonly request: GenerationRequest
  readonly targets: readonly Target[]
  /** The name of the model in the catalogue. */
  readonly modelId: string
  readonly agentId: string | null
  readonly droppedTools: readonly string[]
  readonly history: History
  readonly renderer: ResponseRenderer
  /** By default with the signal of the request. */
  readonly generate: (signal?: AbortSignal) => EventBatches
}

/** The origin of a plan: a client's request, or one from the queue. */
type PlanOrigin = {
  readonly context: RequestContext
  /** Of a connection that serves several requests; its responses are always streamed. */
  readonly turn: SocketTurn | undefined
  readonly id: string
  readonly createdAt: Date
  readonly framesBefore: number
}

type PlanDeps = ResponseServiceDeps & {
  /** With what a request may demand of the output of any model. */
  readonly generateChecked: Generate
}

export function createResponseService(services: ResponseServiceDeps): ResponseService {
  const { generate } = services.inference
  const generateChecked = withCheckedOutput(withSingleCall(withForcedCall(generate)))
  const deps: PlanDeps = { ...services, generateChecked }
  const plan = (body: unknown, context: RequestContext, turn?: SocketTurn) =>
    planResponse(deps, body, {
      context,
      turn,
      id: newId('resp_'),
      createdAt: deps.now(),
      framesBefore: 0,
    })
  return {
    resolve: plan,
    planQueued: (...queued) => planQueued(deps, ...queued),
    async create(given, context, turn) {
      const named = withCollectionIds(given, context.principal, deps.collections)
      const body = named === undefined ? given : await named
      const planned = await plan(body, context, turn)
      const { droppedTools: tools, parsed, head, history, renderer, streams } = planned
      logIgnored(deps.log, { tools, items: parsed.ignoredItems }, context.requestId)
      const { source, result } = head.background
        ? await enqueueResponse(deps, planned, { body, context })
        : startResponse(deps, planned, context)
      return {
        id: head.id,
        streams,
        modelId: planned.modelId,
        source,
        result,
        history: () => [...history.items, ...head.input, ...renderer.stored().output],
        current: () => renderer.result(),
        sequence: () => Math.max(0, renderer.nextSequence() - 1),
      }
    },
  }
}

/** An unstored response ends with its connection. */
function startResponse(deps: ResponseServiceDeps, plan: ResponsePlan, context: RequestContext) {
  const { generate, parsed, renderer } = plan
  return parsed.echo.store
    ? startStored(deps, plan, context)
    : runGeneration({ generate, renderer, context, log: deps.log })
}

async function planQueued(deps: PlanDeps, ...[queued, trace]: Parameters<PrepareQueued>) {
  const { body, context } = await openQueuedRequest(deps, queued, trace)
  return planResponse(deps, body, {
    context,
    turn: undefined,
    id: queued.id,
    createdAt: queued.createdAt,
    framesBefore: queued.segment.last + 1,
  })
}

async function planResponse(
  deps: PlanDeps,
  body: unknown,
  origin: PlanOrigin,
): Promise<ResponsePlan> {
  const { context, turn, id, createdAt, framesBefore } = origin
  const { userId: ownerId } = context.principal
  const { limits } = deps.config
  const historyRequest = readHistoryRequest(body)
  const isInMemory = turn?.find(historyRequest.previousResponseId ?? '') !== undefined
  const history = refersToHistory(historyRequest)
    ? await loadHistory(deps.history, { ownerId, request: historyRequest, memory: turn })
    : noHistory
  const seals = sealsOf(deps.sealer, ownerId)
  const parseContext = { limits, history, seals }
  const asSent = parseCreateResponse(body, parseContext)
  const { echo } = asSent
  if (echo.background && turn !== undefined) {
    throw new AppError('invalid_request', noBackground, { param: 'background' })
  }
  const link = linkHistory(asSent, history, { historyRequest, isInMemory })
  if (echo.store) requireStorable(link.input, deps.config.responses.storedCharsMax)
  const { principal } = context
  const { model: name } = asSent.request
  const { model, agent } =
    deps.modelResolver.resolveKnown(principal, name) ??
    (await deps.modelResolver.resolve(principal, name))
  requireGenerates(model, name)
  const parsed = searchesHere(asSent.needs, model.targets, deps.config, principal.groups)
    ? parseCreateResponse(body, { ...parseContext, hostsWebSearch: true })
    : asSent
  const native = planNative(applyAgent(parsed.request, agent), {
    needs: parsed.needs,
    targets: model.targets,
    config: deps.config,
  })
  const { targets, droppedTools } = native
  const { capabilities } = model
  const request = holdsFiles(native.request)
    ? await deps.requestFiles.load(native.request, { targets, capabilities, context })
    : native.request
  const streams = parsed.stream || turn !== undefined
  const hostedRequest = withAgentTools(parsed.hosted, agent)
  const hosted = usesHostedTools(hostedRequest)
    ? await deps.hostedTools.open(hostedRequest, { caller: principal, tools: request.tools })
    : null
  const withTools =
    hosted === null
      ? deps.generateChecked
      : withHostedTools(deps.generateChecked, hosted, loopLimits(limits, echo))
  const generate = withCompaction(withTools, {
    summarise: deps.inference.generate,
    seal: seals.compaction,
    rules: parsed.compaction,
    contextWindow: model.contextWindow,
  })
  const agentId = agent?.id ?? null
  const job = {
    request,
    targets,
    modelId: model.id,
    agentId,
    surface: 'responses' as const,
    responseId: echo.store ? id : null,
    buffered: !streams,
    streamed: streams || echo.background,
  }
  return {
    streams,
    parsed,
    request,
    targets,
    modelId: model.id,
    agentId,
    droppedTools,
    history: link.history,
    head: {
      id,
      ownerId,
      background: echo.background,
      createdAt,
      previousResponseId: link.previousResponseId,
      conversationId: historyRequest.conversationId,
      input: link.input,
    },
    renderer: new ResponseRenderer({
      id,
      createdAt,
      echo,
      includeSealed: parsed.includeSealed,
      includeSearchResults: parsed.includeSearchResults,
      reasoningSeal: seals.reasoning,
      asyncTools: parsed.asyncTools,
      // The frames of a background response are logged for clients that come later.
      stream: streams || echo.background,
      framesBefore,
      now: deps.now,
    }),
    generate(signal) {
      const run = (own?: AbortSignal) => generate({ ...job, context: withSignal(context, own) })
      if (turn === undefined) return run(signal)
      const { isInputOnly } = parsed
      return generateTurn(run, { turn, isInputOnly, signal: signal ?? context.signal, request })
    },
  }
}

function requireGenerates({ mode }: Model, name: string): void {
  if (mode === 'generate') return
  throw new AppError('invalid_request', `The model "${name}" does not generate text.`, {
    param: 'model',
  })
}

const noBackground = 'Background responses are not supported over a WebSocket; use POST.'

function loopLimits(limits: Config['limits'], echo: ParsedCreate['echo']): ToolLoopLimits {
  return { ...limits, maxToolCalls: echo.max_tool_calls, turnsMax: limits.hostedTurnsMax }
}
