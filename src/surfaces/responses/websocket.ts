import type { ServerWebSocket } from 'bun'
import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { asksForSocket, chooseProtocol } from '#auth/credentials.ts'
import { admit, guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { socketOperation } from './description/socket-operation.ts'
import { type Connection, type ConnectionDeps, openConnection } from './socket/connection.ts'
import { createMemories } from './socket/memory.ts'
import type { Turns } from './turn.ts'

export type ResponsesSocketDeps = {
  auth: Auth
  turns: Turns
  sockets: OpenSockets
  config: Pick<Config, 'limits' | 'stream' | 'websocket'>
  log: Log
}

const permission = 'can_access_api'

/**
 * `GET /v1/responses` as a WebSocket: turns one after the other, with the events of the streams.
 *
 * It is a plain route, since Elysia's own for WebSockets parses each frame before we could look how
 * deep it goes, and hands a text that is no JSON on as if nothing were wrong.
 */
export function responsesSocket({ auth, turns, sockets, config, log }: ResponsesSocketDeps) {
  const memories = createMemories(config.websocket)
  return new Elysia({ name: 'responses-socket', prefix: '/v1/responses' }).use(guard(auth)).get(
    '/',
    ({ request, server, set }) => {
      if (!asksForSocket(request)) throw upgradeRequired()
      if (sockets.count() >= config.websocket.connectionsMax) throw tooManySockets()
      const requestId = requestIdOf(set)
      const data = createHandlers(sockets, {
        turns,
        admit: () => admit(auth, request, permission),
        memory: memories.open(),
        config,
        log,
        requestId,
      })
      const protocol = chooseProtocol(request)
      const headers = {
        'x-request-id': requestId,
        ...(protocol === null ? {} : { 'sec-websocket-protocol': protocol }),
      }
      if (server?.upgrade(request, { data, headers }) !== true) throw badHandshake()
    },
    {
      requires: permission,
      detail: socketOperation,
    },
  )
}

/** The settings of Bun's WebSockets, which hold for a whole server. */
export function socketSettings({ limits, websocket }: Pick<Config, 'limits' | 'websocket'>) {
  return {
    // Measured: it counts what a compressed frame unpacks to, and closes with 1009.
    maxPayloadLength: limits.requestBytesMax,
    // Measured: a ping goes out some seconds before, and whoever does not answer it is cut off.
    idleTimeout: Math.min(Math.max(Math.ceil(websocket.idleMs / 1000), idleSMin), idleSMax),
    // Past this limit Bun drops frames; we send nothing while anything waits.
    backpressureLimit: 0,
    // Compressing each delta for itself makes it longer, not shorter.
    perMessageDeflate: { compress: 'disable' as const, decompress: 'shared' as const },
  }
}

/** Bun counts whole seconds, and knows no shorter and no longer time. */
const idleSMin = 8
const idleSMax = 960

type Socket = ServerWebSocket<unknown>

/** What Elysia's handlers call: they look for them in the data of a socket. */
function createHandlers(sockets: OpenSockets, deps: ConnectionDeps) {
  let connection: Connection | undefined
  let forget = () => {}
  return {
    open(socket: Socket) {
      connection = openConnection(deps, socket)
      forget = sockets.add(connection)
    },
    message(_: Socket, message: string | Uint8Array) {
      connection?.receive(message)
    },
    drain() {
      connection?.drained()
    },
    close() {
      forget()
      connection?.closed()
    },
  }
}

function upgradeRequired(): AppError {
  return new AppError('upgrade_required', 'Ask for a WebSocket here, or POST the request.')
}

function badHandshake(): AppError {
  return new AppError('invalid_request', 'The handshake of the WebSocket is not right.')
}

function tooManySockets(): AppError {
  return new AppError('too_many_streams', 'The server has no room for another connection.', {
    retryAfterS: 1,
  })
}
