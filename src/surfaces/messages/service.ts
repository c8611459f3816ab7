import type { Agent } from '#agents/agents.ts'
import { applyAgent, withAgentTools } from '#agents/apply.ts'
import type { Config } from '#config/schema.ts'
import {
  type HostedToolbox,
  type HostedToolRequest,
  noHostedTools,
  usesHostedTools,
} from '#hosted-tools/hosted-tools.ts'
import type { McpToolRequest } from '#hosted-tools/mcp/request.ts'
import { estimateInput } from '#inference/call-estimate.ts'
import { type EventBatch, usageOfTokens } from '#inference/events.ts'
import { withForcedCall } from '#inference/forced-call.ts'
import type { Generate, Inference } from '#inference/inference.ts'
import { withObjectArguments } from '#inference/object-arguments.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { withSingleCall } from '#inference/single-call.ts'
import { withStopSequences } from '#inference/stop-sequences.ts'
import { withCheckedOutput } from '#inference/structured-output.ts'
import type { TokenCount, TokenCounter } from '#inference/token-count/counter.ts'
import { withHostedTools } from '#inference/tool-loop.ts'
import type { Target } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { asRecord } from '#lib/json.ts'
import { type RequestContext, withSignal } from '#lib/request-context.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'
import { logIgnored } from '#surfaces/log-ignored.ts'
import { planNative, searchesHere } from '#surfaces/native-tools.ts'
import { holdsFiles, type RequestFiles } from '#surfaces/request-files.ts'
import { runGeneration } from '#surfaces/run-generation.ts'
import type { Log } from '#telemetry/log.ts'
import { fitOutput } from './fit-output.ts'
import { unknownModel } from './model-info.ts'
import {
  type ParseContext,
  type ParsedMessage,
  parseCountTokens,
  parseCreateMessage,
} from './parse.ts'
import { invalidField } from './read-object.ts'
import { createMessageRenderer } from './render.ts'

type MessageRequest = {
  readonly context: RequestContext
  readonly headers: Headers
}

type MessageServiceDeps = {
  modelResolver: Pick<ModelResolver, 'resolve' | 'resolveKnown'>
  inference: Pick<Inference, 'generate'>
  tokenCounter: Pick<TokenCounter, 'count'>
  hostedTools: HostedToolbox
  requestFiles: RequestFiles
  sealer: Sealer
  config: Pick<
    Config,
    'limits' | 'tokens' | 'upstream' | 'unsupportedTools' | 'webSearch' | 'mcpServer'
  >
  log: Log
}

/** How long a stream may be delayed by the token count of its first event. */
const countDelayMaxMs = 2

export type MessageService = ReturnType<typeof createMessageService>

/** Creates messages and counts tokens. Throws an `AppError` for an invalid request. */
export function createMessageService(deps: MessageServiceDeps) {
  const parseContextOf = ({ context, headers }: MessageRequest): ParseContext => ({
    limits: deps.config.limits,
    seals: sealsOf(deps.sealer, context.principal.userId),
    headers,
  })
  const { tokenCounter, config } = deps
  const generateChecked = withCheckedOutput(
    withSingleCall(withForcedCall(withStopSequences(deps.inference.generate))),
  )
  const generateAlone: Generate = (job) => generateChecked({ ...job, objectArguments: true })
  /** Keeps the guarantees of the protocol on every upstream. */
  const generateWith = async (
    request: GenerationRequest,
    hostedRequest: HostedToolRequest,
    { principal }: RequestContext,
  ): Promise<Generate> => {
    if (!usesHostedTools(hostedRequest)) return generateAlone
    const { tools } = request
    const hosted = await deps.hostedTools.open(hostedRequest, { caller: principal, tools })
    const { limits } = config
    const loopLimits = { ...limits, maxToolCalls: null, turnsMax: limits.hostedTurnsMax }
    return withObjectArguments(withHostedTools(generateChecked, hosted, loopLimits))
  }
  return {
    async create(body: unknown, messageRequest: MessageRequest) {
      const { context } = messageRequest
      const parseContext = parseContextOf(messageRequest)
      const resolved = await resolveRequest(
        deps,
        (hostsWebSearch) => parseCreateMessage(body, { ...parseContext, hostsWebSearch }),
        context,
      )
      const { parsed, request, model, targets, droppedTools, recorded } = resolved
      refuseSafeguards(body, targets)
      const parts = [...droppedTools, ...parsed.ignored]
      logIgnored(deps.log, { parts }, context.requestId)
      const { contextWindow } = model
      const { isPromptOnly } = parsed
      // An upstream of the same protocol reports the count itself.
      const isRelayed = request.origin !== undefined && targets.every(isOfThisProtocol)
      const limitMs = isPromptOnly ? config.tokens.patienceMs : countDelayMaxMs
      const inputTokens =
        isRelayed && !isPromptOnly && contextWindow === null
          ? estimateInput(request)
          : (await tokenCounter.count(request, targets, { limitMs, context, ...recorded })).tokens
      const readers = isPromptOnly ? targets.filter(isOfThisProtocol) : targets
      const generate = isPromptOnly
        ? generateNothing(deps.inference.generate, { readers, inputTokens })
        : await generateWith(request, hostedRequestOf(resolved), context)
      const fitted = fitOutput(request, { contextWindow, inputTokens })
      const running = runGeneration({
        generate: (signal) =>
          generate({
            ...recorded,
            request: fitted,
            targets: readers,
            context: withSignal(context, signal),
            buffered: !parsed.stream,
            streamed: parsed.stream,
          }),
        renderer: createMessageRenderer({
          id: newId('msg_'),
          model: parsed.request.model,
          inputTokens,
          reasoningSeal: parseContext.seals.reasoning,
          searchSeal: parseContext.seals.search,
          thinkingDisplay: parsed.thinkingDisplay,
          stream: parsed.stream,
        }),
        context,
        log: deps.log,
      })
      const { source, result } = running
      return { source, result, streams: parsed.stream, modelId: model.id }
    },

    /** Counts the input tokens of a request without calling the model. */
    async countTokens(body: unknown, messageRequest: MessageRequest): Promise<TokenCount> {
      const { context } = messageRequest
      const parseContext = parseContextOf(messageRequest)
      const { request, targets, recorded } = await resolveRequest(
        deps,
        (hostsWebSearch) => parseCountTokens(body, { ...parseContext, hostsWebSearch }),
        context,
      )
      const limitMs = config.tokens.patienceMs
      return tokenCounter.count(request, targets, { limitMs, context, ...recorded })
    },
  }
}

type ParsedRequest = Pick<ParsedMessage, 'request' | 'needs' | 'mcp' | 'webSearch'>

/** Resolves the model, its targets and the files, and adds what an agent contributes. */
async function resolveRequest<Parsed extends ParsedRequest>(
  deps: Pick<MessageServiceDeps, 'modelResolver' | 'config' | 'requestFiles'>,
  parse: (hostsWebSearch: boolean) => Parsed,
  context: RequestContext,
) {
  const { principal } = context
  const asSent = parse(false)
  const { model, agent } = await resolveModel(deps, asSent.request, principal)
  const hostsWebSearch = searchesHere(asSent.needs, model.targets, deps.config, principal.groups)
  const parsed = hostsWebSearch ? parse(true) : asSent
  const isRelayed = agent === null
  const relaying = isRelayed && parsed.mcp.length > 0 ? model.targets.filter(isOfThisProtocol) : []
  const native = planNative(applyAgent(parsed.request, agent), {
    needs: { ...parsed.needs, isRelayed },
    targets: relaying.length > 0 ? relaying : model.targets,
    config: deps.config,
  })
  const { targets, droppedTools } = native
  const { capabilities } = model
  const request = holdsFiles(native.request)
    ? await deps.requestFiles.load(native.request, { targets, capabilities, context })
    : native.request
  // An upstream that gets the original request calls the servers itself.
  const mcp = relaying.length > 0 ? [] : parsed.mcp
  const recorded = {
    modelId: model.id,
    agentId: agent?.id ?? null,
    surface: 'messages' as const,
  }
  return { parsed, request, targets, droppedTools, model, agent, mcp, recorded }
}

async function resolveModel(
  { modelResolver }: Pick<MessageServiceDeps, 'modelResolver'>,
  { model: name }: GenerationRequest,
  principal: RequestContext['principal'],
) {
  try {
    const resolved =
      modelResolver.resolveKnown(principal, name) ?? (await modelResolver.resolve(principal, name))
    if (resolved.model.mode === 'generate') return resolved
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'model_not_found') throw error
    throw unknownModel(name, error)
  }
  const message = `model: ${name} does not generate text`
  throw new AppError('invalid_request', message, { param: 'model' })
}

/** An agent may have more tools, except those that need approval, which the protocol does not have. */
function hostedRequestOf(resolved: {
  parsed: Pick<ParsedMessage, 'webSearch'>
  mcp: readonly McpToolRequest[]
  agent: Agent | null
}): HostedToolRequest {
  const { parsed, mcp, agent } = resolved
  const { webSearch } = parsed
  return withAgentTools({ ...noHostedTools, mcp, webSearch }, agent, { approvals: false })
}

/** Upstreams of this protocol know `max_tokens: 0`, by which they only read the prompt into their cache. */
function isOfThisProtocol({ upstream }: Target): boolean {
  return upstream.kind === 'messages'
}

/** Clients run the check of `safeguards` themselves after an error that names it. */
function refuseSafeguards(body: unknown, targets: readonly Target[]): void {
  if (asRecord(body)['safeguards'] === undefined || targets.every(isOfThisProtocol)) return
  throw invalidField('safeguards', 'is not supported with this model')
}

/** The output of `max_tokens: 0`: from an upstream that reads the prompt, or composed here. */
function generateNothing(
  generate: Generate,
  { readers, inputTokens }: { readers: readonly Target[]; inputTokens: number },
): Generate {
  if (readers.length === 0) return () => emptyOutput(inputTokens)
  return (job) => {
    const sampling = { ...job.request.sampling, maxOutputTokens: 0 }
    return generate({ ...job, request: { ...job.request, sampling } })
  }
}

async function* emptyOutput(inputTokens: number): AsyncGenerator<EventBatch, void, void> {
  const usage = usageOfTokens(inputTokens, 0)
  yield [{ type: 'generation-start' }, { type: 'finish', reason: 'length', rawReason: null, usage }]
}
