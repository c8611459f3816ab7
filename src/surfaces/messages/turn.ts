import type { Agent } from '#agents/agents.ts'
import { applyAgent, withAgentTools } from '#agents/apply.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { type HostedToolbox, noHostedTools } from '#hosted-tools/hosted-tools.ts'
import type { Generate, Generations } from '#inference/generate.ts'
import { withObjectArguments } from '#inference/object-arguments.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { withSingleCall } from '#inference/single-call.ts'
import { withStopSequences } from '#inference/stop-sequences.ts'
import { withCheckedOutput } from '#inference/structured-output.ts'
import type { TokenCount, TokenCounter } from '#inference/token-count/counter.ts'
import { withHostedTools } from '#inference/tool-loop.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { Model } from '#models/catalogue.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { createSeals } from '#sealing/seals.ts'
import { type RunningGeneration, runGeneration } from '#surfaces/run-generation.ts'
import type { Log } from '#telemetry/log.ts'
import { fitOutput } from './fit-output.ts'
import { generateNothing } from './generate-nothing.ts'
import type { MessageObject } from './message.ts'
import { type ParseContext, parseCountTokens, parseCreateMessage } from './parse.ts'
import { createMessageRenderer } from './render.ts'
import { unknownModel } from './unknown-model.ts'

/** One request for a message. */
export type MessageTurns = {
  /** Throws an `AppError` for a request that cannot be followed. */
  begin(body: unknown, caller: MessageCaller): Promise<MessageTurn>
  /** How many tokens the input of a request has, without asking a model to answer it. */
  count(body: unknown, caller: MessageCaller): Promise<TokenCount>
}

export type MessageCaller = {
  readonly principal: Principal
  readonly requestId: string
  readonly headers: Headers
  /** Aborts when the connection is gone. */
  readonly signal: AbortSignal
}

type MessageTurn = RunningGeneration<MessageObject> & { readonly streams: boolean }

export type MessageTurnDeps = {
  modelResolver: Pick<ModelResolver, 'resolve'>
  generations: Pick<Generations, 'generate'>
  tokenCounter: Pick<TokenCounter, 'count'>
  hostedTools: HostedToolbox
  sealer: Sealer
  config: Pick<Config, 'limits' | 'tokens'>
  log: Log
}

/** How long a stream may begin later for the sake of the count that it begins with. */
const startPatienceMs = 2

export function createMessageTurns(deps: MessageTurnDeps): MessageTurns {
  const contextOf = ({ principal, headers }: MessageCaller): ParseContext => ({
    limits: deps.config.limits,
    seals: createSeals(deps.sealer, principal.userId),
    headers,
  })
  const { tokenCounter, config } = deps
  return {
    async begin(body, caller) {
      const context = contextOf(caller)
      const parsed = parseCreateMessage(body, context)
      logLeftOut(deps.log, parsed.leftOut, caller.requestId)
      const { request, model, agent } = await resolveRequest(deps, parsed.request, caller)
      const { tokens: inputTokens } = await tokenCounter.count(request, model.targets, {
        patienceMs: parsed.generatesNothing ? config.tokens.patienceMs : startPatienceMs,
        signal: caller.signal,
      })
      const generate = parsed.generatesNothing
        ? () => generateNothing(inputTokens)
        : await composeGenerate(deps, { request, agent, caller })
      const { contextWindow, targets } = model
      const job = {
        request: fitOutput(request, { contextWindow, inputTokens }),
        targets,
        requestId: caller.requestId,
        readWhole: !parsed.stream,
      }
      const running = runGeneration({
        generate: (control) => generate({ ...job, ...control }),
        renderer: createMessageRenderer({
          id: newId('msg_'),
          model: parsed.request.model,
          inputTokens,
          reasoningSeal: context.seals.reasoning,
          thinkingDisplay: parsed.thinkingDisplay,
          stream: parsed.stream,
        }),
        signal: caller.signal,
        requestId: caller.requestId,
        log: deps.log,
      })
      return { ...running, streams: parsed.stream }
    },

    async count(body, caller) {
      const asked = parseCountTokens(body, contextOf(caller))
      const { request, model } = await resolveRequest(deps, asked, caller)
      const waiting = { patienceMs: config.tokens.patienceMs, signal: caller.signal }
      return tokenCounter.count(request, model.targets, waiting)
    },
  }
}

type Resolved = { request: GenerationRequest; model: Model; agent: Agent | null }

/** What the model is asked, with what an agent adds where one is called. */
async function resolveRequest(
  { modelResolver }: Pick<MessageTurnDeps, 'modelResolver'>,
  asked: GenerationRequest,
  { principal }: MessageCaller,
): Promise<Resolved> {
  const { model: name, promptCacheKey } = asked
  try {
    const { model, agent } = await modelResolver.resolve(principal, name, promptCacheKey)
    if (model.mode === 'generate') return { request: applyAgent(asked, agent), model, agent }
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'model_not_found') throw error
    throw unknownModel(name, error)
  }
  const message = `model: ${name} does not generate text`
  throw new AppError('invalid_request', message, { param: 'model' })
}

/** Generations that keep what the protocol promises, whatever the upstream makes of it. */
async function composeGenerate(
  { generations, hostedTools, config }: MessageTurnDeps,
  given: { request: GenerationRequest; agent: Agent | null; caller: MessageCaller },
): Promise<Generate> {
  const { request, agent, caller } = given
  const single = withSingleCall(withStopSequences(generations.generate))
  const checked = withCheckedOutput(single)
  // A caller of this protocol asks for none that run here; an agent may have some.
  const asked = withAgentTools(noHostedTools, agent, { approvals: false })
  const hosted = await hostedTools.open(asked, { caller: caller.principal, tools: request.tools })
  if (hosted === null) return withObjectArguments(checked)
  const { limits } = config
  const { hostedTurnsMax: turnsMax } = limits
  const looped = withHostedTools(checked, hosted, { ...limits, maxToolCalls: null, turnsMax })
  return withObjectArguments(looped)
}

/** How much of what was left out is logged: so many words, of so many characters. */
const leftOutWordsMax = 20
const leftOutCharsMax = 64

/** It is no error, but whoever runs this may wonder. */
function logLeftOut(log: Log, leftOut: readonly string[], requestId: string): void {
  if (leftOut.length === 0) return
  const parts = leftOut.slice(0, leftOutWordsMax).map((word) => word.slice(0, leftOutCharsMax))
  log.info('parts of a request were left out', { request_id: requestId, parts })
}
