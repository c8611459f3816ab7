import { defaultOptions } from '#inference/request.ts'
import type { Transport } from '#inference/transport.ts'
import type { AdapterLimits } from '#inference/upstream.ts'
import type { Adapters } from '#inference/upstreams/index.ts'
import { Cancellation } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { startLimit } from '#lib/time-limit.ts'
import type { Probes } from './checks.ts'
import { blameOf, isSilence } from './outcome.ts'

/** A generation has longer than a model list: it may wait for others. */
const generationFactor = 5

/** Requests that check upstreams: their model list, and one token of output. */
export function createProbes(deps: {
  readonly adapters: Adapters
  readonly transport: Transport
  readonly limits: AdapterLimits
  readonly probeMs: number
  /** Of the requests that these checks are. */
  readonly requestContext: () => RequestContext
}): Probes {
  const { adapters, transport, limits, probeMs } = deps
  const attempt = async (
    limitMs: number,
    run: (signal: Cancellation) => Promise<unknown>,
  ): Promise<boolean> => {
    const signal = new Cancellation()
    const stop = startLimit(limitMs, () => signal.abort(tooSlow()))
    try {
      await run(signal)
      return true
    } catch (error) {
      return isResponse(error)
    } finally {
      stop()
    }
  }
  return {
    reach: (upstream) =>
      attempt(probeMs, (signal) =>
        adapters[upstream.kind].listModels({ upstream, transport, limits, signal }),
      ),
    generate: (target) =>
      attempt(probeMs * generationFactor, async (signal) => {
        const { upstream, model } = target
        const requestContext = deps.requestContext()
        const context = { upstream, transport, limits, signal, model, requestContext }
        const batches = adapters[upstream.kind].generate(probeRequest(model), {
          ...context,
          streamed: true,
        })
        for await (const batch of batches) if (batch.length > 0) return
        throw tooSlow()
      }),
  }
}

/** Any response, also a refusal, ends a silence; a real request will show the rest. */
function isResponse(error: unknown): boolean {
  return error instanceof AppError && blameOf(error) !== 'upstream' && !isSilence(error)
}

function probeRequest(model: string) {
  return {
    ...defaultOptions,
    model,
    instructions: null,
    items: [{ type: 'message', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
    tools: [],
    sampling: { ...defaultOptions.sampling, maxOutputTokens: 1 },
  } as const
}

function tooSlow(): AppError {
  return new AppError('upstream_first_event_timeout', 'The upstream did not respond to a check.')
}
