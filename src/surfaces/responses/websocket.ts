import { Type } from '@sinclair/typebox'
import type { ServerWebSocket } from 'bun'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import type { Auth } from '#auth/auth.ts'
import { chooseProtocol, isUpgrade } from '#auth/credentials.ts'
import { authorize } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import { rememberPeer } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { streamEvent } from './schema/events.ts'
import { exampleEvents, exampleRequest } from './schema/examples.ts'
import { steerEvent } from './schema/steer-events.ts'
import type { ResponseService } from './service.ts'
import { type Connection, type ConnectionDeps, openConnection } from './socket/connection.ts'
import { createHistoryMemories } from './socket/memory.ts'

const permission = 'can_access_api'
const switchingProtocols = 101

const errors = {
  invalid_request: 'The WebSocket handshake is invalid.',
  upgrade_required: 'Upgrade to a WebSocket, or POST the request.',
  too_many_streams: 'The server has reached its limit of WebSocket connections.',
}

/**
 * `GET /v1/responses` as a WebSocket: several responses at a time, with the events of their streams.
 *
 * The endpoint upgrades the request itself: Elysia's WebSocket routes parse every frame before its
 * depth can be checked, and pass on invalid JSON as a string.
 */
export function responsesSocket({
  auth,
  service,
  sockets,
  config,
  log,
}: {
  auth: Auth
  service: ResponseService
  sockets: OpenSockets
  config: Pick<Config, 'limits' | 'stream' | 'websocket'>
  log: Log
}): Endpoint {
  const memories = createHistoryMemories(config.websocket)
  return endpoint({
    method: 'GET',
    path: '/v1/responses',
    permission,
    tag: 'Responses',
    summary: 'Create responses over a WebSocket',
    description,
    headers: Type.Object({
      upgrade: Type.String({ description: '`websocket`.' }),
      'sec-websocket-protocol': Type.Optional(
        Type.String({
          description:
            'Subprotocols. The server selects the first one that does not contain a credential.',
        }),
      ),
    }),
    responses: {
      101: {
        description: 'The connection is open. The server sends `ResponseServerFrame`.',
        content: json(serverFrame, { ...exampleEvents[4], stream_id: 'a' }),
      },
    },
    errors,
    handle({ request, server, context }) {
      if (!isUpgrade(request)) {
        throw new AppError('upgrade_required', errors.upgrade_required)
      }
      if (sockets.count() >= config.websocket.connectionsMax) {
        throw new AppError('too_many_streams', errors.too_many_streams, { retryAfterS: 1 })
      }
      const peers = rememberPeer(request, server)
      const data = createHandlers(sockets, {
        service,
        auth,
        authorize: async () => authorize(auth, request, { permission, scope: 'inference' }, peers),
        memory: memories.open(),
        config,
        log,
        context,
      })
      const protocol = chooseProtocol(request)
      const headers = {
        'x-request-id': context.requestId,
        ...(protocol === null ? {} : { 'sec-websocket-protocol': protocol }),
      }
      if (server?.upgrade(request, { data, headers }) !== true) {
        throw new AppError('invalid_request', errors.invalid_request)
      }
      context.exchange.isOpen = true
      context.exchange.status = switchingProtocols
    },
  })
}

/** The WebSocket settings of Bun, which apply to the whole server. */
export function socketSettings({ limits, websocket }: Pick<Config, 'limits' | 'websocket'>) {
  return {
    // Measured: applies to the decompressed frame, and closes with 1009.
    maxPayloadLength: limits.requestBytesMax,
    // Measured: a ping is sent some seconds before, and a client that does not answer is cut off.
    idleTimeout: Math.min(
      Math.max(Math.ceil(websocket.idleMs / 1000), idleSecondsMin),
      idleSecondsMax,
    ),
    // Bun drops frames above this limit; the outbox sends nothing while a frame is buffered.
    backpressureLimit: 0,
    // Compression makes short deltas longer, and a small frame could expand to the largest one.
    perMessageDeflate: false,
  }
}

/** The bounds of Bun's idle timeout. */
const idleSecondsMin = 8
const idleSecondsMax = 960

type Socket = ServerWebSocket<unknown>

/** The handlers that Elysia looks up in the data of a socket. */
function createHandlers(sockets: OpenSockets, deps: ConnectionDeps) {
  const { exchange } = deps.context
  let connection: Connection | undefined
  let remove = () => {}
  return {
    open(socket: Socket) {
      connection = openConnection(deps, socket)
      remove = sockets.add(connection)
    },
    message(_: Socket, message: string | Uint8Array) {
      exchange.addBytesIn(Buffer.byteLength(message))
      connection?.receive(message)
    },
    drain() {
      connection?.drained()
    },
    close() {
      remove()
      connection?.closed()
      exchange.end()
    },
  }
}

const streamId = Type.Optional(
  Type.String({ maxLength: 256, description: 'The `stream_id` of the request.' }),
)

/** The frame of a failure before the first event of a response, or without a request. */
const errorFrame = Type.Object(
  {
    type: Type.Literal('error'),
    status: Type.Integer({ description: 'The corresponding HTTP status.' }),
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()]),
      code: Type.String(),
    }),
    stream_id: streamId,
  },
  { $id: 'ResponseRefusalFrame' },
)

export const serverFrame = Type.Union([streamEvent, steerEvent, errorFrame], {
  $id: 'ResponseServerFrame',
})

const exampleCreateFrame = JSON.stringify({
  type: 'response.create',
  ...exampleRequest,
  store: false,
  stream_id: 'a',
})
const exampleEventFrame = JSON.stringify({ ...exampleEvents[4], stream_id: 'a' })
const exampleErrorFrame = JSON.stringify({
  type: 'error',
  status: 404,
  error: {
    message: 'The model "llama-4" does not exist.',
    type: 'not_found_error',
    param: 'model',
    code: 'model_not_found',
  },
  stream_id: 'a',
})

const exampleSteerFrame = JSON.stringify({
  type: 'response.steer',
  previous_response_id: 'resp_1',
  input: 'Only the ones that can be had this week.',
})

const description = `One connection serves many requests. Those with the same \`stream_id\`, or without one, run one after the
other; different ones run at the same time, up to 16, and further ones wait, up to 32. The names of streams are
1 to 256 letters, digits, \`_\`, \`-\` and \`.\`; a connection has at most 32 of them.

**The client sends** text frames. \`response.create\` is the body of \`POST /v1/responses\`
(\`CreateResponse\`) with a \`type\` and an optional \`stream_id\`; \`stream\` is ignored, and \`background\` is
refused:

\`\`\`json
${exampleCreateFrame}
\`\`\`

With \`"generate": false\` the input is only stored, for a following request with
\`previous_response_id\`. Unstored responses can be continued on the same connection, on any stream; it
remembers the last 8 of each. \`response.processed\` is ignored. There is no frame for cancelling; close the connection, or
\`POST /v1/responses/{id}/cancel\` for a stored response.

**The server sends** the events of \`POST /v1/responses\` as JSON, one per text frame, without \`[DONE]\`:

\`\`\`json
${exampleEventFrame}
\`\`\`

**Steering.** \`response.steer\` sends a user message, or a list of them, while a response runs:

\`\`\`json
${exampleSteerFrame}
\`\`\`

\`response.steer.accepted\` says that the input is queued. The response then ends where it is, as \`incomplete\`
with the reason \`steered\`, and keeps what it said; hosted tools that run end first. Another response with the
same settings follows by itself: it continues the first one, and its \`response.created\` says that the model
gets the input. If the client has to return the results of tool calls first, the response completes,
\`response.steer.pending\` lists them, and the queued input precedes that of the request that continues the
response on the same stream. Input that no response gets comes back with \`response.steer.failed\`. Steer events
have no number of their own in the stream of the response. Responses of a conversation, and with
\`context_management\`, cannot be steered.

A failure before the first event of a response, and an invalid frame, are reported by one error frame; the
connection stays open:

\`\`\`json
${exampleErrorFrame}
\`\`\`

**Closing.** A connection lives for one hour, ends with the code \`websocket_connection_limit_reached\` and is
closed with 1000. Other close codes: 1008 within a minute after the credential expires or is revoked, or its
principal loses the permission; a running response then ends for this connection; 1009 for a frame that is
too long, 1012 when the server stops. A client that leaves pings unanswered for two minutes, or does not
read, is disconnected. The configuration may set other limits.

Clients that cannot set headers send their credential as the query parameter \`token\`, or as the subprotocol
\`openai-insecure-api-key.<credential>\`.`
