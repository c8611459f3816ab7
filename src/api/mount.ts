import { Elysia, NotFoundError } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { type Access, authorize } from '#auth/guard.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { type BodyLimits, readJsonBody } from '#http/body.ts'
import { idleTimeoutS, streamTimeoutS } from '#http/long-body.ts'
import { type HttpMetrics, RouteMetrics } from '#http/metrics.ts'
import { noteFailedRequest, requestIdOf } from '#http/request-lifecycle.ts'
import { type ClientAddresses, createClientAddresses } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import { readTraceContext, type TraceContext } from '#lib/request-context.ts'
import { shadowingRoutes } from './allowed-methods.ts'
import {
  type CallerContext,
  type Endpoint,
  type EndpointInput,
  type JsonBody,
  type PublicContext,
  type ResponseSettings,
  tokenRequired,
} from './endpoint.ts'
import { readQuery } from './query.ts'
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
}

/**
 * Serves endpoints: authorises, validates the query and the body, in this order, and hands the typed
 * input to the handler. Failures are thrown to the root error handler.
 */
export function mountEndpoints(endpoints: readonly Endpoint[], deps: MountDeps) {
  const app = new Elysia({ name: 'endpoints' })
  for (const endpoint of endpoints) {
    app.route(endpoint.method, endpoint.path, serve(endpoint, deps), { parse: 'none' })
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
type ElysiaInput = Pick<
  EndpointInput<string, never, never, never>,
  'request' | 'set' | 'server'
> & {
  readonly params: Readonly<Record<string, string>>
}

type Handler = (
  input: EndpointInput<Record<string, string>, unknown, unknown, PublicContext | CallerContext>,
) => unknown

function serve(
  endpoint: Endpoint,
  { auth, config, httpMetrics, clientAddresses = createClientAddresses([]) }: MountDeps,
) {
  const { query: querySpec, body: bodySpec } = endpoint
  const handle = endpoint.handle as Handler
  const status = successStatus(endpoint)
  const streamIdleS = streamTimeoutS(config.stream)
  const access = accessOf(endpoint)
  const { method, path, responses } = endpoint
  const route = httpMetrics === undefined ? null : new RouteMetrics(httpMetrics, method, path)
  const hasParams = path.includes(':')
  const isSocket = 101 in responses
  return async ({ request, set, server, params }: ElysiaInput) => {
    const receivedAtMs = performance.now()
    let context: PublicContext | CallerContext | null = null
    try {
      context = await openContext(access, auth, {
        request,
        receivedAtMs,
        set,
        server,
        clientAddresses,
      })
      if (hasParams) requireDecoded(params)
      endpoint.before?.(set)
      // Receiving a body and generating a response may take long; their own deadlines apply.
      if (bodySpec !== undefined) server?.timeout(request, 0)
      const query = querySpec === undefined ? {} : readQuery(querySpec, searchOf(request.url))
      const body = bodySpec?.kind === 'json' ? await readBody(bodySpec, request, config) : undefined
      const result = await handle({ params, query, body, context, request, set, server })
      if (bodySpec !== undefined) {
        server?.timeout(request, result instanceof Response ? streamIdleS : idleTimeoutS)
      }
      if (status !== null) set.status = status
      // Its handler has no result if it has upgraded the connection.
      const isUpgraded = isSocket && result === undefined
      route?.ended(isUpgraded ? 101 : statusOf(result, set), receivedAtMs)
      return result
    } catch (error) {
      noteFailedRequest(request, { context, route, receivedAtMs })
      if (bodySpec !== undefined && context !== null) server?.timeout(request, idleTimeoutS)
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

type Arrival = Pick<ElysiaInput, 'request' | 'set' | 'server'> & {
  readonly receivedAtMs: number
  readonly clientAddresses: ClientAddresses
}

async function openContext(
  access: EndpointAccess | null,
  auth: MountDeps['auth'],
  arrival: Arrival,
): Promise<PublicContext | CallerContext> {
  const requestId = requestIdOf(arrival.set)
  if (access === null) return new RequestScope(requestId, arrival)
  const principal = await authorize(auth, arrival.request, access, arrival.server)
  if (access.needsToken) requireToken(principal)
  return new CallerScope(requestId, arrival, principal)
}

/** Reads from the request only what is asked for: a signal, for one, is made with its first use. */
class RequestScope implements PublicContext {
  readonly requestId: string
  readonly receivedAtMs: number
  readonly #arrival: Arrival

  constructor(requestId: string, arrival: Arrival) {
    this.requestId = requestId
    this.receivedAtMs = arrival.receivedAtMs
    this.#arrival = arrival
  }

  get signal(): AbortSignal {
    return this.#arrival.request.signal
  }

  get trace(): TraceContext | null {
    return readTraceContext(this.#arrival.request.headers)
  }

  get clientAddress(): string | null {
    const { clientAddresses, request, server } = this.#arrival
    return clientAddresses.of(request, server)
  }
}

class CallerScope extends RequestScope implements CallerContext {
  readonly principal: Principal

  constructor(requestId: string, arrival: Arrival, principal: Principal) {
    super(requestId, arrival)
    this.principal = principal
  }

  get keyId(): string | null {
    const { credential } = this.principal
    return credential.kind === 'api-key' ? credential.keyId : null
  }
}

/** A leaked key must not be able to create more of them. */
function requireToken({ credential }: Principal): void {
  if (credential.kind === 'jwt') return
  throw new AppError('jwt_required', tokenRequired)
}

async function readBody(
  { bytesMax, isOptional, read }: JsonBody<unknown>,
  request: Request,
  { limits, files }: MountDeps['config'],
): Promise<unknown> {
  if (isOptional && request.body === null) return undefined
  const body = await readJsonBody(request, {
    requestBytesMax: Math.min(bytesMax, limits.requestBytesMax),
    jsonDepthMax: limits.jsonDepthMax,
    gapMs: files.uploadGapMs,
    totalMs: files.uploadMs,
  })
  return read(body)
}

function statusOf(result: unknown, { status }: ResponseSettings): number {
  if (result instanceof Response) return result.status
  return typeof status === 'number' ? status : 200
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
