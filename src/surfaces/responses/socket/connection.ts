import type { CallerContext } from '#api/endpoint.ts'
import type { Auth } from '#auth/auth.ts'
import { isRefusal, watchAuthorization } from '#auth/guard.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { beginStream, type FrameSink } from '#http/event-stream.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { Exchange } from '#lib/exchange.ts'
import type { ResponseService } from '#surfaces/responses/service.ts'
import type { Log } from '#telemetry/log.ts'
import {
  type CreateFrame,
  type EventEnding,
  errorFrame,
  readClientFrame,
  toServerFrames,
} from './frames.ts'
import type { HistoryMemory } from './memory.ts'
import { createOutbox, type Wire } from './outbox.ts'

export type ConnectionDeps = {
  service: ResponseService
  auth: Pick<Auth, 'watch'>
  /** Authorises a request anew; throws if the principal has lost its permission. */
  authorize(): Promise<Principal>
  memory: HistoryMemory
  config: Pick<Config, 'limits' | 'stream' | 'websocket'>
  log: Log
  /** Of the handshake. The requests of the connection have contexts of their own. */
  context: CallerContext
}

export type Connection = ReturnType<typeof openConnection>

/** Why a connection accepts no more requests, and how it is closed after the running one. */
type Shutdown = {
  readonly error: AppError
  readonly closeCode: number
  /** Whether to send the error even if no request is waiting. */
  readonly isAnnounced: boolean
}

// RFC 6455, section 7.4.1, and the IANA registry of close codes.
const normalClosure = 1000
const policyViolation = 1008
const serviceRestart = 1012

/** The connection of one client. It serves one request at a time. */
export function openConnection(deps: ConnectionDeps, wire: Wire) {
  const { config, memory } = deps
  const { exchange: opened } = deps.context
  const outbox = createOutbox(wire, { ...config.stream, exchange: opened })
  const { ageMaxMs, recheckMs } = config.websocket
  const ageTimer = setTimeout(() => shutDown(tooOld(ageMaxMs)), ageMaxMs)
  const { principal, keyId } = deps.context
  const stopWatch = watchAuthorization(deps.auth, {
    holder: () => ({ userId: principal.userId, keyId }),
    authorizeAgain: () => deps.authorize(),
    periodMs: recheckMs,
    onRefused: revoke,
  })
  const waiting: CreateFrame[] = []
  let running: AbortController | null = null
  let shutdown: Shutdown | null = null
  let requestCount = 0

  function enqueue(frame: CreateFrame): void {
    const refusal = shutdown?.error ?? (running === null ? null : queueFull(frame))
    if (refusal === null) waiting.push(frame)
    else refuse(refusal, frame.streamId)
    if (running === null && waiting.length > 0) void runWaiting()
  }

  function queueFull({ chars }: CreateFrame): AppError | null {
    const waitingChars = waiting.reduce((sum, frame) => sum + frame.chars, chars)
    const isBelowMax = waiting.length < config.websocket.turnsQueuedMax
    if (isBelowMax && waitingChars <= config.limits.requestBytesMax) return null
    return new AppError(
      'rate_limit_exceeded',
      'Too many requests are waiting on this connection, which serves one at a time.',
    )
  }

  async function runWaiting(): Promise<void> {
    for (let frame = waiting.shift(); frame !== undefined; frame = waiting.shift()) {
      running = new AbortController()
      await run(frame, running.signal)
    }
    running = null
    if (shutdown !== null) close(shutdown)
  }

  /**
   * Runs a request and remembers its history for a later one. A failure before the first event, or a
   * missing terminal event, is reported by an error frame; any other failure is an event. A failed
   * request removes its predecessor from memory, as the format requires.
   */
  async function run({ body, streamId, chars }: CreateFrame, signal: AbortSignal): Promise<void> {
    const exchange = nextExchange()
    const { requestId, receivedAtMs } = exchange
    const sentBefore = opened.bytesOut ?? 0
    exchange.bytesIn = chars
    let ending = null as EventEnding
    const sink: FrameSink = {
      write(events) {
        const converted = toServerFrames(events, streamId)
        ending = converted.ending ?? ending
        return outbox.write(converted.frames)
      },
      end: () => {},
      close: () => wire.terminate(),
    }
    try {
      const principal = await authorize()
      exchange.identify(principal)
      // The properties of the first context are getters, which a copy would not have.
      const { trace, clientAddress = null } = deps.context
      const context = {
        ...{ principal, keyId, trace, clientAddress, exchange },
        ...{ receivedAtMs, requestId, signal },
      }
      const response = await deps.service.create(body, context, memory)
      const { pump } = await beginStream(response.source(), config.stream)
      await pump(sink, '')
      if (signal.aborted) return
      if (ending === null) throw missingEnd()
      // Stored responses can be continued on any connection.
      if (ending === 'ended' && body['store'] === false) {
        memory.remember(response.id, response.history())
      }
    } catch (error) {
      const failure = toAppError(error)
      exchange.error = failure
      exchange.status = failure.status
      outbox.push(errorFrame(failure, streamId))
    } finally {
      exchange.bytesOut = (opened.bytesOut ?? 0) - sentBefore
      if (signal.aborted) exchange.abandon()
      else exchange.end()
      if (ending !== 'ended') memory.forget(String(body['previous_response_id']))
    }
  }

  async function authorize(): Promise<Principal> {
    try {
      return await deps.authorize()
    } catch (error) {
      if (isRefusal(error)) revoke(error)
      throw error
    }
  }

  /** Ends the connection of a principal that has lost its permission, and what it runs. */
  function revoke(error: AppError): void {
    shutDown({ error, closeCode: policyViolation, isAnnounced: false })
    running?.abort(error)
  }

  /** One request of the connection. */
  function nextExchange(): Exchange {
    return opened.next(`${opened.requestId}.${++requestCount}`)
  }

  /** Refuses a request that does not run. */
  function refuse(error: AppError, streamId: string | null): void {
    nextExchange().fail(error)
    outbox.push(errorFrame(error, streamId))
  }

  function shutDown(reason: Shutdown): void {
    if (shutdown !== null) return
    shutdown = reason
    for (const { streamId } of waiting.splice(0)) refuse(reason.error, streamId)
    if (running === null) close(reason)
  }

  function close({ isAnnounced, closeCode, error }: Shutdown): void {
    if (isAnnounced) outbox.push(errorFrame(error, null))
    opened.details = { close_code: closeCode, close_reason: error.wireCode }
    outbox.finish(closeCode, error.message)
  }

  return {
    receive(message: string | Uint8Array) {
      const frame = readClientFrame(message, config.limits)
      if (frame.kind === 'create') enqueue(frame)
      if (frame.kind === 'invalid') refuse(frame.error, frame.streamId)
    },
    drained: outbox.drained,
    closed() {
      clearTimeout(ageTimer)
      stopWatch()
      outbox.closed()
      waiting.length = 0
      memory.clear()
      running?.abort(new AppError('client_closed', 'The client disconnected.'))
    },
    drain: () => shutDown({ error: draining(), closeCode: serviceRestart, isAnnounced: false }),
    isBusy: () => running !== null || wire.getBufferedAmount() > 0,
  }
}

function tooOld(ageMaxMs: number): Shutdown {
  const message = `Connections are closed after ${ageMaxMs / 1000} s; open a new one.`
  const error = new AppError('invalid_request', message, {
    code: 'websocket_connection_limit_reached',
  })
  return { error, closeCode: normalClosure, isAnnounced: true }
}

function draining(): AppError {
  return new AppError('draining', 'The server is shutting down.', { retryAfterS: 1 })
}

function missingEnd(): AppError {
  return new AppError(
    'internal_error',
    'The event stream ended without a terminal event; retrieve the response by its id.',
  )
}
