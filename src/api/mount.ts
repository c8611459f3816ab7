import { Elysia, NotFoundError } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { type Access, authorize } from '#auth/guard.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { type BodyLimits, readJsonBody } from '#http/body.ts'
import { ClientCancellation } from '#http/client-cancellation.ts'
import { idleTimeoutS, streamTimeoutS } from '#http/long-body.ts'
import { type HttpMetrics, RouteMetrics } from '#http/metrics.ts'
import { exchangeOf } from '#http/request-lifecycle.ts'
import { RunningRequest } from '#http/running-request.ts'
import { type ServerSource, trackServer } from '#http/track-server.ts'
import type { Cancellation } from '#lib/cancellation.ts'
import { type ClientAddresses, createClientAddresses } from '#lib/client-address.ts'
import { createCohorts } from '#lib/cohorts.ts'
import { AppError } from '#lib/errors.ts'
import type { Exchange } from '#lib/exchange.ts'
import type { TraceContext } from '#lib/trace.ts'
import { runInTrace } from '#lib/trace-scope.ts'
import type { Tracer } from '#telemetry/tracing/tracer.ts'
import { shadowingRoutes } from './allowed-methods.ts'
import {
  type CallerContext,
  type Endpoint,
  type EndpointInput,
  type JsonBody,
  type PublicContext,
  tokenRequired,
} from './endpoint.ts'
import { readQuery } from './query.ts'
import { createRespond } from './respond.ts'
import { scopeOf } from './scope.ts'

export type MountDeps = {
  auth: Pick<Auth, 'authenticate'>
  config: Pick<Config, 'stream'> & {
    readonly files: Pick<Config['files'], 'uploadGapMs' | 'uploadMs'>
  } & {
    readonly limits: BodyLimits
  }
  httpMetrics?: HttpMetrics
  /** By default no proxy is trusted. */
  clientAddresses?: ClientAddresses
  /** Null: no traces are exported. */
  tracer?: Tracer | null
  /** Of every response that has no others of these names. */
  securityHeaders?: Readonly<Record<string, string>>
}

/**
 * Serves endpoints: authorises, validates the query and the body, in this order, and hands the typed
 * input to the handler. Failures are thrown to the root error handler.
 */
export function mountEndpoints(endpoints: readonly Endpoint[], deps: MountDeps) {
  const app = new Elysia({ name: 'endpoints' })
  // Requests that arrive together are parsed and planned together.
  const shared = { serverOf: trackServer(app), joinCohort: createCohorts() }
  for (const endpoint of endpoints) {
    app.route(endpoint.method, endpoint.path, serve(endpoint, deps, shared), { parse: 'none' })
  }
  for (const { method, path } of shadowingRoutes(endpoints)) {
    app.route(method, path, refuseMethod, { parse: 'none' })
  }
  return app
}

function refuseMethod(): never {
  throw new NotFoundError()
}

/** The part of Elysia's handler context that endpoints use. */
type ElysiaInput = Pick<EndpointInput<string, never, never, never>, 'request' | 'set'> & {
  readonly params: Readonly<Record<string, string>>
}

type Handler = (
  input: EndpointInput<Record<string, string>, unknown, unknown, PublicContext | CallerContext>,
) => unknown

type Shared = { readonly serverOf: ServerSource; readonly joinCohort: () => Promise<void> }

function serve(endpoint: Endpoint, deps: MountDeps, { serverOf, joinCohort }: Shared) {
  const { auth, config, httpMetrics, tracer, securityHeaders = {} } = deps
  const { clientAddresses = createClientAddresses([]) } = deps
  const { query: querySpec, body: bodySpec } = endpoint
  const handle = endpoint.handle as Handler
  const status = successStatus(endpoint)
  const streamIdleS = streamTimeoutS(config.stream)
  const access = accessOf(endpoint)
  const { method, path } = endpoint
  const route = httpMetrics === undefined ? null : new RouteMetrics(httpMetrics, method, path)
  const hasParams = path.includes(':')
  const respond = createRespond(path, securityHeaders)
  return async ({ request, set, params }: ElysiaInput) => {
    const server = serverOf()
    const exchange = exchangeOf(set)
    exchange.route = path
    exchange.meter = route
    let running: RunningRequest | null = null
    try {
      let context: PublicContext | CallerContext
      // Later the connection may be gone, and with it the address.
      exchange.clientAddress = clientAddresses.of(request, server)
      if (access === null) context = new RequestScope(exchange, request)
      else {
        const authorized = authorize(auth, request, access, server)
        const principal = authorized instanceof Promise ? await authorized : authorized
        exchange.identify(principal)
        if (access.needsToken) requireToken(principal)
        context = new CallerScope(exchange, request, principal)
      }
      if (hasParams) requireDecoded(params)
      endpoint.before?.(set)
      if (bodySpec !== undefined && server !== null) running = new RunningRequest(request, server)
      const query = querySpec === undefined ? {} : readQuery(querySpec, searchOf(request.url))
      let body: unknown
      if (bodySpec?.kind === 'json') {
        await joinCohort()
        body = await readBody(bodySpec, context, request, config)
      }
      const input = { params, query, body, context, request, set, server }
      const { trace } = exchange
      // Jobs continue the trace of the request that adds them.
      const addsJobs = tracer != null && trace !== null && method !== 'GET'
      const result = await (addsJobs ? runInTrace(trace, () => handle(input)) : handle(input))
      running?.end(result instanceof Response ? streamIdleS : idleTimeoutS)
      if (bodySpec?.kind === 'raw') noteLength(exchange, request)
      if (status !== null) set.status = status
      const response = respond(result, { exchange, request, set })
      route?.ended(exchange.status, exchange.receivedAtMs)
      return response
    } catch (error) {
      running?.end(idleTimeoutS)
      throw error
    }
  }
}

/** The router has null for a parameter that is not valid percent-encoding. */
function requireDecoded(params: Readonly<Record<string, string | null>>): void {
  for (const name in params) {
    if (params[name] !== null) continue
    throw new AppError('not_found', `The ${name} in the path is not valid percent-encoding.`)
  }
}

/** Null: the endpoint is public, or authorises the request itself. */
function accessOf(endpoint: Endpoint): EndpointAccess | null {
  const { permission, authorization, credential } = endpoint
  if (permission === 'public' || authorization === 'handler') return null
  return { permission, scope: scopeOf(endpoint), needsToken: credential === 'jwt' }
}

type EndpointAccess = Access & { readonly needsToken: boolean }

/** Reads from the request only what is asked for: a signal, for one, is made with its first use. */
class RequestScope implements PublicContext {
  readonly exchange: Exchange
  readonly #request: Request

  constructor(exchange: Exchange, request: Request) {
    this.exchange = exchange
    this.#request = request
  }

  get requestId(): string {
    return this.exchange.requestId
  }

  get receivedAtMs(): number {
    return this.exchange.receivedAtMs
  }

  get signal(): AbortSignal {
    return this.#request.signal
  }

  followClient(): Cancellation {
    return new ClientCancellation(this.#request)
  }

  get trace(): TraceContext | null {
    return this.exchange.trace
  }

  get clientAddress(): string | null {
    return this.exchange.clientAddress
  }
}

class CallerScope extends RequestScope implements CallerContext {
  readonly principal: Principal

  constructor(exchange: Exchange, request: Request, principal: Principal) {
    super(exchange, request)
    this.principal = principal
  }

  get keyId(): string | null {
    return this.exchange.keyId
  }
}

/** Of a body that the handler has read by itself. */
function noteLength(exchange: Exchange, request: Request): void {
  const length = request.headers.get('content-length')
  if (length !== null) exchange.bytesIn = Number(length)
}

/** A leaked key must not be able to create more of them. */
function requireToken({ credential }: Principal): void {
  if (credential.kind === 'jwt') return
  throw new AppError('jwt_required', tokenRequired)
}

function readBody(
  { bytesMax, isOptional, read }: JsonBody<unknown>,
  { exchange }: PublicContext,
  request: Request,
  { limits, files }: MountDeps['config'],
): Promise<unknown> | undefined {
  if (isOptional && request.body === null) return undefined
  return readJsonBody(
    request,
    {
      requestBytesMax: Math.min(bytesMax, limits.requestBytesMax),
      jsonDepthMax: limits.jsonDepthMax,
      gapMs: files.uploadGapMs,
      totalMs: files.uploadMs,
    },
    { exchange, read },
  )
}

/** The only success status of an endpoint where that is not 200; otherwise null. */
function successStatus({ responses }: Endpoint): number | null {
  const [only, ...others] = Object.keys(responses)
    .map(Number)
    .filter((status) => status < 300)
  return only === undefined || only === 200 || only < 200 || others.length > 0 ? null : only
}

/** Cheaper than a parsed URL, which every request would pay for. */
function searchOf(url: string): string {
  const start = url.indexOf('?')
  return start === -1 ? '' : url.slice(start + 1)
}
