import type { Cancellation } from '#lib/cancellation.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { InferenceDeps } from './inference.ts'
import type { Slot } from './routing/slot.ts'
import type { RequestIdentity } from './transport.ts'
import type { Adapter, AdapterContext } from './upstream.ts'
import { hideUpstreamIn } from './upstream-error.ts'

type AttemptParams = {
  readonly slot: Slot
  readonly signal: Cancellation
  readonly requestContext: RequestContext
  /** The time until the result. */
  readonly limitMs: number
  /** Whether the result is streamed. The first output of a whole response is its end: no limit. */
  readonly streamed: boolean
}

/** One attempt at the target of a slot. Throws an `AppError` and ends the slot if it fails. */
export async function runAttempt<T>(
  { adapters, transport, limits }: InferenceDeps,
  { slot, signal, requestContext, limitMs, streamed }: AttemptParams,
  run: (adapter: Adapter, context: AdapterContext) => Promise<T>,
): Promise<T> {
  const { upstream } = slot.state.upstream
  const { model } = slot.target
  slot.cancellation = signal
  const expire = () => signal.abort(firstEventTimeout(limitMs))
  const timer = streamed ? setTimeout(expire, limitMs) : undefined
  try {
    const context: AdapterContext = {
      upstream,
      model,
      transport,
      limits,
      signal,
      identity: identityOf(slot, requestContext),
      requestContext,
      streamed,
    }
    const result = await run(adapters[upstream.kind], context)
    slot.answered()
    return result
  } catch (error) {
    const failure = failureOf(hideUpstreamIn(error, upstream))
    slot.end(failure)
    throw failure
  } finally {
    clearTimeout(timer)
  }
}

function identityOf(
  { span }: Slot,
  { exchange, requestId, trace }: RequestContext,
): RequestIdentity {
  return {
    requestId: exchange?.nextUpstreamId() ?? `${requestId}-${newId('')}`,
    trace: span ?? trace,
    exchange,
  }
}

/** An abort without a reason of ours comes from a client that disconnected. */
export function failureOf(error: unknown): AppError {
  if (error instanceof DOMException && error.name === 'AbortError') {
    return new AppError('client_closed', 'The client disconnected.', { cause: error })
  }
  return toAppError(error)
}

function firstEventTimeout(limitMs: number): AppError {
  return new AppError(
    'upstream_first_event_timeout',
    `The upstream sent no output within ${limitMs / 1000} s.`,
  )
}
