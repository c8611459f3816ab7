import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import type { OpenSocket } from '#http/open-sockets.ts'
import { logFailure } from '#http/request-lifecycle.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { Turns } from '#surfaces/responses/turn.ts'
import type { Log } from '#telemetry/log.ts'
import { type AskedTurn, readClientFrame } from './client-frame.ts'
import type { TurnMemory } from './memory.ts'
import { createOutbox, type Wire } from './outbox.ts'
import { createTurnSink, runTurn } from './run-turn.ts'
import { errorFrame } from './server-frames.ts'

/** One client at its socket: its requests, one after the other, and what they remember. */
export type Connection = OpenSocket & {
  receive(message: string | Uint8Array): void
  drained(): void
  closed(): void
}

export type ConnectionDeps = {
  turns: Turns
  /** The caller as they stand now; throws where they may no longer ask. */
  admit(): Promise<Principal>
  memory: TurnMemory
  config: Pick<Config, 'limits' | 'stream' | 'websocket'>
  log: Log
  /** Of the handshake; its turns are counted behind it. */
  requestId: string
}

/** Why a connection takes no more turns, and how it is closed when the running one is over. */
type Retirement = {
  readonly error: AppError
  readonly closeCode: number
  /** Whether the client is told also when it waits for nothing. */
  readonly announced: boolean
}

// RFC 6455, section 7.4.1, and the registry of close codes
const closeNormally = 1000
const closeForPolicy = 1008
const closeForRestart = 1012

export function openConnection(deps: ConnectionDeps, wire: Wire): Connection {
  const { config, memory } = deps
  const outbox = createOutbox(wire, config.stream)
  const { ageMaxMs } = config.websocket
  const ageing = setTimeout(() => retire(tooOld(ageMaxMs)), ageMaxMs)
  const waiting: AskedTurn[] = []
  let running: AbortController | null = null
  let retirement: Retirement | null = null
  let turnCount = 0

  function ask(turn: AskedTurn): void {
    const refusal = retirement?.error ?? (running === null ? null : crowded(turn))
    if (refusal === null) waiting.push(turn)
    else refuse(refusal, turn.streamId)
    if (running === null && waiting.length > 0) void runWaiting()
  }

  function crowded({ chars }: AskedTurn): AppError | null {
    const waitingChars = waiting.reduce((sum, turn) => sum + turn.chars, chars)
    const hasRoom = waiting.length < config.websocket.turnsQueuedMax
    if (hasRoom && waitingChars <= config.limits.requestBytesMax) return null
    return new AppError(
      'rate_limit_exceeded',
      'Too many requests wait on this connection; it answers one at a time.',
    )
  }

  async function runWaiting(): Promise<void> {
    for (let turn = waiting.shift(); turn !== undefined; turn = waiting.shift()) {
      running = new AbortController()
      await run(turn, running.signal)
    }
    running = null
    if (retirement !== null) leave(retirement)
  }

  async function run({ body, streamId }: AskedTurn, signal: AbortSignal): Promise<void> {
    const requestId = `${deps.requestId}.${++turnCount}`
    const sink = createTurnSink(outbox, { streamId, cut: () => wire.terminate() })
    const caller = async () => ({ principal: await admit(), requestId, signal })
    try {
      await runTurn(deps, { body, caller, sink })
    } catch (error) {
      refuse(toAppError(error), streamId, requestId)
    }
  }

  /** Whoever lost their right in the meantime is told so, and let go. */
  async function admit(): Promise<Principal> {
    try {
      return await deps.admit()
    } catch (cause) {
      const error = toAppError(cause)
      const isLost = error.status === 401 || error.status === 403
      if (isLost) retire({ error, closeCode: closeForPolicy, announced: false })
      throw error
    }
  }

  function refuse(error: AppError, streamId: string | null, requestId = deps.requestId): void {
    logFailure(deps.log, error, { requestId, method: 'WebSocket', path: '/v1/responses' })
    outbox.push(errorFrame(error, streamId))
  }

  function retire(reason: Retirement): void {
    if (retirement !== null) return
    retirement = reason
    for (const { streamId } of waiting.splice(0)) refuse(reason.error, streamId)
    if (running === null) leave(reason)
  }

  function leave({ announced, closeCode, error }: Retirement): void {
    if (announced) refuse(error, null)
    outbox.finish(closeCode, error.message)
  }

  return {
    receive(message) {
      const frame = readClientFrame(message, config.limits)
      if (frame.asks === 'turn') ask(frame)
      if (frame.asks === 'too much') refuse(frame.error, frame.streamId)
    },
    drained: outbox.drained,
    closed() {
      clearTimeout(ageing)
      outbox.closed()
      waiting.length = 0
      memory.clear()
      running?.abort(new AppError('client_closed', 'The client has gone.'))
    },
    drain: () => retire({ error: draining(), closeCode: closeForRestart, announced: false }),
    isBusy: () => running !== null || wire.getBufferedAmount() > 0,
  }
}

function tooOld(ageMaxMs: number): Retirement {
  const sentence = `A connection lives for ${ageMaxMs / 1000} s; open a new one.`
  const error = new AppError('invalid_request', sentence, {
    code: 'websocket_connection_limit_reached',
  })
  return { error, closeCode: closeNormally, announced: true }
}

function draining(): AppError {
  return new AppError('draining', 'The server is shutting down.', { retryAfterS: 1 })
}
