import type { Cancellation } from './cancellation.ts'
import type { Exchange } from './exchange.ts'
import { newId } from './id.ts'
import { type TraceContext, traceIdOf } from './trace.ts'

/** The part of the principal that features and upstream calls need. */
export type RequestPrincipal = {
  readonly userId: string
  readonly groups: readonly string[]
  /** The credential of a request; absent in background work. */
  readonly credential?: RequestCredential
  /** Set for the gateway itself, which may use every model. */
  readonly isSystem?: true
  /** The request and its API key, for the audit log; absent in background work. */
  readonly origin?: {
    readonly keyId: string | null
    readonly requestId: string
    readonly clientAddress: string | null
  }
}

/** What the model resolver and the limits need of a credential. */
type RequestCredential = {
  readonly kind: string
  /** Of an API key. */
  readonly keyId?: string
  /** Names and patterns of the models that the key may use; null or absent: every model of its owner. */
  readonly models?: readonly string[] | null
  /** Of the key alone, by the names of the configuration. */
  readonly limits?: Readonly<Partial<Record<string, number>>> | null
}

/**
 * One object per request. It travels with the request into every log line, job, upstream call and
 * record. Background work has its own context, with the principal it runs for.
 */
export type RequestContext<P extends RequestPrincipal = RequestPrincipal> = {
  /** `req_…`, also sent to the client as `x-request-id`. */
  readonly requestId: string
  readonly principal: P
  /** The id of the API key; null where the caller sent a token of the identity provider. */
  readonly keyId: string | null
  readonly trace: TraceContext | null
  /** Of the client, in one notation; determined when it is asked for, while the request lasts. */
  readonly clientAddress?: string | null
  /** The HTTP request that the work is a part of; absent in background work. */
  readonly exchange?: Exchange | undefined
  /** Yields to requests of callers that wait for the response; they have none. */
  readonly priority?: 'background' | 'batch' | undefined
  /** `performance.now()` when the request arrived. */
  readonly receivedAtMs: number
  /** Aborted when the client disconnects or the server cancels the request. */
  readonly signal: AbortSignal
  /** Follows `signal`, at less cost for requests that end soon. */
  followClient?(): Cancellation
}

/** The principal of a change, which the audit log records with its request. */
export function actingPrincipal({
  principal: { userId, groups },
  keyId,
  requestId,
  clientAddress = null,
}: Pick<RequestContext, 'principal' | 'keyId' | 'requestId' | 'clientAddress'>): RequestPrincipal {
  return { userId, groups, origin: { keyId, requestId, clientAddress } }
}

/** The parts of a context that are logged. */
type RequestFacts = Pick<RequestContext, 'requestId'> &
  Partial<Pick<RequestContext, 'principal' | 'keyId' | 'trace'>>

/** The fields by which every log line of a request can be found. */
export function requestFields({ requestId, principal, keyId, trace }: RequestFacts) {
  return {
    request_id: requestId,
    ...(principal === undefined ? {} : { user_id: principal.userId }),
    ...(keyId == null ? {} : { key_id: keyId }),
    ...(trace == null ? {} : { trace_id: traceIdOf(trace) }),
  }
}

/** Builds the context of a request that arrives now. */
export function createRequestContext<P extends RequestPrincipal>(request: {
  requestId: string
  principal: P
  signal: AbortSignal
}): RequestContext<P> {
  const { requestId, principal, signal } = request
  return {
    requestId,
    principal,
    keyId: principal.credential?.keyId ?? null,
    trace: null,
    receivedAtMs: performance.now(),
    signal,
  }
}

/** The gateway itself: probes, ingestion and other work for nobody in particular. */
export const systemPrincipal: RequestPrincipal = { userId: '', groups: [], isSystem: true }

/**
 * The user without the list of the API key, which restricts the models that a request names: not those
 * that collections and settings name.
 */
export function withoutKey({ userId, groups, isSystem }: RequestPrincipal): RequestPrincipal {
  return { userId, groups, ...(isSystem === undefined ? {} : { isSystem }) }
}

/** The context of work that no HTTP request waits for: probes, ingestion, background jobs. */
export function createBackgroundContext(
  signal: AbortSignal,
  principal: RequestPrincipal = systemPrincipal,
): RequestContext {
  const context = createRequestContext({ requestId: newId('req_'), principal, signal })
  return { ...context, priority: 'batch' }
}

/** The same context with this signal, if there is one. The properties of a context may be getters. */
export function withSignal<P extends RequestPrincipal>(
  context: RequestContext<P>,
  signal: AbortSignal | undefined,
): RequestContext<P> {
  if (signal === undefined || context.signal === signal) return context
  const { requestId, principal, keyId, trace, exchange, priority, receivedAtMs } = context
  return { requestId, principal, keyId, trace, exchange, priority, receivedAtMs, signal }
}
