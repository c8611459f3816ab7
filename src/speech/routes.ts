import type { ServerWebSocket } from 'bun'
import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { asksForSocket, chooseProtocol } from '#auth/credentials.ts'
import { admit } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import { AppError } from '#lib/errors.ts'
import { speechOperation } from './operations.ts'
import type { Connection, Knock } from './session/connection.ts'
import type { SpeechSessions } from './session/sessions.ts'

export type SpeechSocketDeps = {
  auth: Pick<Auth, 'authenticate'>
  sessions: SpeechSessions
  sockets: OpenSockets
}

/**
 * `GET /v1/stt` as a WebSocket: speech in, transcripts out. Whoever asks for a socket gets one and
 * is refused over it, because browsers show no answer to a handshake that failed; so the permission
 * is declared here and asked for behind the upgrade.
 */
export function speechSocket({ auth, sessions, sockets }: SpeechSocketDeps) {
  return new Elysia({ name: 'speech-socket', prefix: '/v1/stt' }).get(
    '/',
    ({ request, server, set }) => {
      const caller = admit(auth, request, basePermission)
      if (!asksForSocket(request)) return caller.then(demandUpgrade)
      // It is awaited at the socket; until then it is nobody's failure.
      caller.catch(() => {})
      const requestId = requestIdOf(set)
      const knock = { parameters: new URL(request.url).searchParams, caller, requestId }
      const protocol = chooseProtocol(request)
      const headers = {
        'x-request-id': requestId,
        ...(protocol === null ? {} : { 'sec-websocket-protocol': protocol }),
      }
      // Audio does not get shorter, and unpacking is work; what is not offered is not agreed on.
      request.headers.delete('sec-websocket-extensions')
      const data = createHandlers(knock, { sessions, sockets })
      if (server?.upgrade(request, { data, headers }) !== true) throw badHandshake()
      return undefined
    },
    { detail },
  )
}

/** What the macro `requires` declares, for a route that is not refused by it. */
const detail = { ...speechOperation, 'x-permission': basePermission }

type Socket = ServerWebSocket<unknown>

/** What Elysia's handlers call: they look for them in the data of a socket. */
function createHandlers(
  knock: Knock,
  { sessions, sockets }: Pick<SpeechSocketDeps, 'sessions' | 'sockets'>,
) {
  let connection: Connection | undefined
  let forget = () => {}
  return {
    open(socket: Socket) {
      connection = sessions.connect(knock, socket)
      forget = sockets.add(connection)
      connection.open()
    },
    message(_: Socket, message: string | Uint8Array) {
      connection?.receive(message)
    },
    drain() {
      connection?.drained()
    },
    close(_: Socket, closeCode: number) {
      forget()
      connection?.closed(closeCode)
    },
  }
}

function demandUpgrade(): never {
  throw new AppError('upgrade_required', 'Ask for a WebSocket here.')
}

function badHandshake(): AppError {
  return new AppError('invalid_request', 'The handshake of the WebSocket is not right.')
}
