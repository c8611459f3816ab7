import type { Server, ServerWebSocket } from 'bun'
import type { PublicContext } from '#api/endpoint.ts'
import type { Auth } from '#auth/auth.ts'
import { chooseProtocol, isUpgrade } from '#auth/credentials.ts'
import type { Holder } from '#auth/current-principals.ts'
import { authorize as authorizeRequest, watchAuthorization } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import { type Peers, rememberPeer } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { Connection, UpgradeRequest } from './connection.ts'
import type { OpenDialect } from './dialect.ts'
import type { SessionContext } from './session.ts'
import type { SpeechSessions } from './sessions.ts'

export type UpgradeDeps = {
  readonly auth: Pick<Auth, 'authenticate' | 'watch'>
  readonly sessions: SpeechSessions
  readonly sockets: OpenSockets
  readonly config: Pick<Config, 'websocket'>
}

const switchingProtocols = 101
export const upgradeRequired = 'This endpoint requires a WebSocket upgrade.'
export const invalidUpgrade = 'The WebSocket handshake is not valid.'

const access = { permission: basePermission, scope: 'speech' } as const

type Arrival = {
  readonly request: Request
  readonly server: Server<unknown> | null
  readonly context: PublicContext
}

/**
 * Accepts the WebSocket of a speech session, and refuses over the socket if necessary, because browsers
 * do not expose the response of a failed handshake.
 */
export function acceptSocket(
  deps: UpgradeDeps,
  { request, server, context }: Arrival,
  dialect?: OpenDialect,
): undefined | Promise<never> {
  const { auth } = deps
  const peers = rememberPeer(request, server)
  const authorize = () => authorizeSpeech(auth, { request, peers, context })
  const authorized = authorize()
  if (!isUpgrade(request)) {
    return authorized.then(() => {
      throw new AppError('upgrade_required', upgradeRequired)
    })
  }
  // The connection awaits it; until then a rejection is not unhandled.
  authorized.catch(() => {})
  const { exchange, requestId } = context
  const protocol = chooseProtocol(request)
  const headers = {
    'x-request-id': requestId,
    ...(protocol === null ? {} : { 'sec-websocket-protocol': protocol }),
  }
  // Compression does not shrink audio; an extension that is not offered is not negotiated.
  request.headers.delete('sec-websocket-extensions')
  const parameters = new URL(request.url).searchParams
  const upgrade = {
    parameters,
    exchange,
    context: authorized,
    ...(dialect === undefined ? {} : { dialect }),
  }
  const data = socketHandlers(upgrade, authorize, deps)
  if (server?.upgrade(request, { data, headers }) === true) {
    exchange.isOpen = true
    exchange.status = switchingProtocols
    return undefined
  }
  throw new AppError('invalid_request', invalidUpgrade)
}

async function authorizeSpeech(
  auth: UpgradeDeps['auth'],
  arrival: { readonly request: Request; readonly peers: Peers; readonly context: PublicContext },
): Promise<SessionContext> {
  const { request, peers, context } = arrival
  const { requestId, receivedAtMs, trace, exchange } = context
  const principal = await authorizeRequest(auth, request, access, peers)
  const { credential } = principal
  const keyId = credential.kind === 'api-key' ? credential.keyId : null
  exchange.identify(principal)
  return { requestId, receivedAtMs, trace, exchange, principal, keyId }
}

/** Elysia calls these handlers, which it finds in the data of a socket. */
function socketHandlers(
  upgrade: UpgradeRequest,
  authorizeAgain: () => Promise<unknown>,
  { auth, sessions, sockets, config }: UpgradeDeps,
) {
  let connection: Connection | undefined
  let unregister = () => {}
  let stopWatch = () => {}
  return {
    open(socket: ServerWebSocket<unknown>) {
      connection = sessions.connect(upgrade, socket)
      unregister = sockets.add(connection)
      const refuse = (error: AppError) => connection?.refuse(error)
      let holder: Holder | null = null
      const note = ({ principal, keyId }: SessionContext) => {
        holder = { userId: principal.userId, keyId }
      }
      upgrade.context.then(note, () => {})
      stopWatch = watchAuthorization(auth, {
        holder: () => holder,
        authorizeAgain,
        periodMs: config.websocket.recheckMs,
        onRefused: refuse,
      })
      connection.open()
    },
    message(_: ServerWebSocket<unknown>, message: string | Uint8Array) {
      upgrade.exchange.addBytesIn(message.length)
      connection?.receive(message)
    },
    drain() {
      connection?.onDrain()
    },
    close(_: ServerWebSocket<unknown>, closeCode: number) {
      unregister()
      stopWatch()
      connection?.onClose(closeCode)
      upgrade.exchange.end()
    },
  }
}
