import type { CallerContext } from '#api/endpoint.ts'
import type { Auth } from '#auth/auth.ts'
import { isRefusal, watchAuthorization } from '#auth/guard.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { beginStream, type FrameSink } from '#http/event-stream.ts'
import { Steering } from '#inference/steering.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { Exchange } from '#lib/exchange.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ResponseService } from '#surfaces/responses/service.ts'
import type { Log } from '#telemetry/log.ts'
import {
  type CreateFrame,
  type EventEnding,
  errorFrame,
  readClientFrame,
  toServerFrames,
} from './frames.ts'
import { createLanes } from './lanes.ts'
import type { HistoryMemory } from './memory.ts'
import { createOutbox, type Wire } from './outbox.ts'
import { createSteers, type Steer } from './steers.ts'

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

/** One of the running requests of a connection. */
type Turn = CreateFrame & { readonly controller: AbortController }

/** The outbox detects a client that stalls: with many lanes, each may wait long for its turn. */
const laneStallMs = 2 ** 31 - 1

/** The connection of one client. It serves the requests of one lane in order, and lanes concurrently. */
export function openConnection(deps: ConnectionDeps, wire: Wire) {
  const { config, memory } = deps
  const { exchange: opened } = deps.context
  const { activeMax, lanesMax, turnsQueuedMax: queuedMax } = config.websocket
  const { requestBytesMax: charsMax } = config.limits
  const outbox = createOutbox(wire, { ...config.stream, exchange: opened })
  const lanes = createLanes({ activeMax, lanesMax, queuedMax, queuedCharsMax: charsMax })
  const steers = createSteers({ push: outbox.push, charsMax })
  const { ageMaxMs, recheckMs } = config.websocket
  const ageTimer = setTimeout(() => shutDown(tooOld(ageMaxMs)), ageMaxMs)
  const { principal, keyId } = deps.context
  const stopWatch = watchAuthorization(deps.auth, {
    holder: () => ({ userId: principal.userId, keyId }),
    authorizeAgain: () => deps.authorize(),
    periodMs: recheckMs,
    onRefused: revoke,
  })
  const running = new Set<Turn>()
  let shutdown: Shutdown | null = null
  let isClosed = false
  let requestCount = 0

  function enqueue(frame: CreateFrame): void {
    const refusal = shutdown?.error ?? lanes.add(frame)
    if (refusal !== null) refuse(refusal, frame.streamId)
    startWaiting()
  }

  function startWaiting(): void {
    for (let frame = lanes.next(); frame !== null; frame = lanes.next()) {
      const turn: Turn = { ...frame, controller: new AbortController() }
      running.add(turn)
      void run(turn).then(() => finish(turn))
    }
  }

  function finish(turn: Turn): void {
    running.delete(turn)
    lanes.done(turn.streamId)
    startWaiting()
    if (shutdown !== null && running.size === 0) close(shutdown)
  }

  /**
   * Runs a request and remembers its history for a later one. A failure before the first event, or a
   * missing terminal event, is reported by an error frame; any other failure is an event. A failed
   * request removes its predecessor from memory, as the format requires.
   */
  async function run({ controller: { signal }, ...frame }: Turn): Promise<void> {
    const { streamId, chars } = frame
    const isSuccessor = frame.steers !== undefined
    const { previous_response_id: previousId } = frame.body
    const input = frame.steers ?? steers.waitingFor(previousId, streamId)
    const body = isSuccessor ? frame.body : withSteers(frame.body, input)
    const exchange = nextExchange()
    const { requestId, receivedAtMs } = exchange
    exchange.bytesIn = chars
    let ending = null as EventEnding
    let isCommitted = false
    const sink: FrameSink = {
      write(events) {
        if (!isCommitted) steers.committed(input)
        isCommitted = true
        const converted = toServerFrames(events, streamId)
        ending = converted.ending ?? ending
        return outbox.write(converted.frames, exchange)
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
      const steering = new Steering()
      const turn = { find: memory.find, steering }
      const response = await deps.service.create(body, context, turn)
      const { id, sequence } = response
      steers.started(id, { streamId, steering, body, sequence })
      try {
        const { pump } = await beginStream(response.source(), {
          ...config.stream,
          readerStallMs: laneStallMs,
        })
        await pump(sink, '')
        if (ending === null && !signal.aborted) throw missingEnd()
        // Stored responses can be continued on any connection.
        if (ending === 'ended' && !response.current().store) {
          memory.remember(id, response.history(), streamId)
        }
      } finally {
        goOn(steers.ended(id, response.current()), { ...frame, body })
      }
    } catch (error) {
      if (signal.aborted) return
      const failure = toAppError(error)
      exchange.error = failure
      exchange.status = failure.status
      if (!isSuccessor || isCommitted) outbox.push(errorFrame(failure, streamId))
      if (!isCommitted) steers.notCommitted(input, streamId, failure.message)
    } finally {
      if (signal.aborted) exchange.abandon()
      else exchange.end()
      if (ending !== 'ended') memory.forget(String(previousId), streamId)
    }
  }

  /** Continues a response that was steered, with the settings of its request. */
  function goOn(next: readonly Steer[], { body, streamId }: CreateFrame): void {
    const [steer] = next
    if (steer === undefined || isClosed) return
    if (shutdown !== null) {
      steers.notCommitted(next, streamId, shutdown.error.message)
      return
    }
    const input = next.flatMap(({ messages }) => messages)
    const chars = next.reduce((sum, each) => sum + each.chars, 0)
    const { generate: _, ...settings } = body
    const successor = { ...settings, input, previous_response_id: steer.responseId }
    lanes.addNext({ body: successor, streamId, chars, steers: next })
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
    abortAll(error)
  }

  function abortAll(error: AppError): void {
    for (const { controller } of running) controller.abort(error)
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
    for (const { streamId, steers: input } of lanes.clear()) {
      if (input === undefined) refuse(reason.error, streamId)
      else steers.notCommitted(input, streamId, reason.error.message)
    }
    steers.close(reason.error.message)
    if (running.size === 0) close(reason)
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
      if (frame.kind === 'steer') steers.receive(frame)
      if (frame.kind === 'invalid') refuse(frame.error, frame.streamId)
    },
    drained: outbox.drained,
    closed() {
      isClosed = true
      clearTimeout(ageTimer)
      stopWatch()
      outbox.closed()
      lanes.clear()
      memory.clear()
      abortAll(new AppError('client_closed', 'The client disconnected.'))
    },
    drain: () => shutDown({ error: draining(), closeCode: serviceRestart, isAnnounced: false }),
    isBusy: () => running.size > 0 || wire.getBufferedAmount() > 0,
  }
}

/** The input of a request that continues a steered response begins with what steers it. */
function withSteers(body: JsonObject, steers: readonly Steer[]): JsonObject {
  if (steers.length === 0) return body
  const { input = [] } = body
  const given = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  if (!Array.isArray(given)) return body
  return { ...body, input: [...steers.flatMap(({ messages }) => messages), ...given] }
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
