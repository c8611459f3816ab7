import { Type } from '@sinclair/typebox'
import type { ServerWebSocket } from 'bun'
import { type Endpoint, endpoint, json, type PublicContext } from '#api/endpoint.ts'
import type { Auth } from '#auth/auth.ts'
import { chooseProtocol, isUpgrade } from '#auth/credentials.ts'
import type { Holder } from '#auth/current-principals.ts'
import { authorize as authorizeRequest, watchAuthorization } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import { type Peers, rememberPeer } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { Connection, UpgradeRequest } from './session/connection.ts'
import { sessionQuery } from './session/query.ts'
import { type ServerFrame, serverFrame } from './session/server-frames.ts'
import type { SessionContext } from './session/session.ts'
import type { SpeechSessions } from './session/sessions.ts'

export type SpeechEndpointsDeps = {
  readonly auth: Pick<Auth, 'authenticate' | 'watch'>
  readonly sessions: SpeechSessions
  readonly sockets: OpenSockets
  readonly config: Pick<Config, 'websocket'>
}

/**
 * `GET /v1/stt` as a WebSocket. Every upgrade is accepted, and refused over the socket if necessary,
 * because browsers do not expose the response of a failed handshake.
 */
export function speechEndpoints(deps: SpeechEndpointsDeps): Endpoint[] {
  const { auth } = deps
  return [
    endpoint({
      method: 'GET',
      path: '/v1/stt',
      permission: basePermission,
      authorization: 'handler',
      tag: 'Speech',
      summary: 'Transcribe live speech over a WebSocket',
      description,
      query: { schema: sessionQuery, read: (parameters) => parameters },
      headers: Type.Object({ upgrade: Type.String({ description: '`websocket`.' }) }),
      responses: {
        101: {
          description: 'The socket is open. The server sends `SpeechServerFrame`s.',
          content: json(serverFrame, finalExample),
        },
      },
      errors: { invalid_request: invalidUpgrade, upgrade_required: upgradeRequired },
      handle({ query: parameters, context, request, server }) {
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
        const upgrade = { parameters, exchange, context: authorized }
        const data = socketHandlers(upgrade, authorize, deps)
        if (server?.upgrade(request, { data, headers }) === true) {
          exchange.isOpen = true
          exchange.status = switchingProtocols
          return undefined
        }
        throw new AppError('invalid_request', invalidUpgrade)
      },
    }),
  ]
}

const switchingProtocols = 101
const upgradeRequired = 'This endpoint requires a WebSocket upgrade.'
const invalidUpgrade = 'The WebSocket handshake is not valid.'

const access = { permission: basePermission, scope: 'speech' } as const

async function authorizeSpeech(
  auth: SpeechEndpointsDeps['auth'],
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
  { auth, sessions, sockets, config }: SpeechEndpointsDeps,
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

const startExample = { type: 'session_start', options: { vocabulary: ['Sluice'], flow: 'credit' } }

const finalExample: ServerFrame = {
  type: 'transcript',
  seq: 7,
  segment: 0,
  rev: 3,
  is_final: true,
  text: 'good morning',
  start: 0.42,
  end: 1.18,
  speech_final: true,
  confidence: 0.97,
  lang: 'en',
  words: [
    { word: 'good', start: 0.42, end: 0.66, confidence: 0.98 },
    { word: 'morning', start: 0.7, end: 1.18, confidence: 0.96 },
  ],
  from_finalize: null,
}

const errorExample: ServerFrame = {
  type: 'error',
  seq: 1,
  fatal: true,
  error: {
    code: 'unsupported_language',
    message: 'This language is not supported.',
    param: 'lang',
    retryable: false,
    details: { value: 'xx', supported_languages: ['cs', 'de', 'el', 'en', 'fr', 'sk'] },
  },
  close_code: 1008,
}

const description = `Send audio while it is spoken and receive transcripts as JSON. Points in time are seconds from the
first sample of the session; durations are whole milliseconds.

The WebSocket handshake always succeeds, because browsers do not expose why one failed. Errors of the query or the
credential are sent in an \`error\` frame before the socket closes; the close reason is the error code. \`language\`, the
former name of \`lang\`, is refused with \`deprecated_parameter\`.

**Client frames.** The first message must arrive within 10 seconds:

\`\`\`json
${JSON.stringify(startExample)}
\`\`\`

| frame | fields |
|---|---|
| \`session_start\` | all optional: \`audio\` (\`container\`, \`channels\`), \`options\` (\`partials\`, \`words\`, \`max_partial_hz\`, \`endpointing_ms\`, \`vocabulary\`, \`flow\`, \`live\`), \`resume\` (\`session_id\`, \`token\`, \`last_seq\`), \`metadata\` |
| binary | audio, in messages of any size up to 256 KiB; audio sent before \`session_ready\` is queued |
| \`finalize\` | \`id\`; requests finals of all audio sent so far, then \`finalized\` |
| \`keepalive\` | keeps a session without audio open; otherwise it ends after 30 seconds |
| \`session_end\`, or an empty binary message | ends the audio: the remaining finals follow, then \`session_end\` |

**Server frames** have a \`type\` and a number \`seq\` (1, 2, 3 …):

| frame | meaning |
|---|---|
| \`session_ready\` | the engine, the detected audio format, limits, and the token to resume |
| \`speech_start\` | speech was detected |
| \`transcript\` | a partial, which the next one of its \`segment\` replaces, or a final, which never changes and is never dropped |
| \`finalized\`, \`audio_ack\` | progress |
| \`warning\` | \`engine_lagging\`, \`engine_mute\`, \`engine_rollover\`, \`engine_waiting\`, \`audio_lost\`, \`unknown_fields\`, \`frames_forgotten\` |
| \`error\` | why the session ends |
| \`session_end\` | \`stats\` account for every millisecond: covered by a final, silence, or \`untranscribed_ms\` with its \`gaps\` |

\`\`\`json
${JSON.stringify(finalExample)}
\`\`\`

\`\`\`json
${JSON.stringify(errorExample)}
\`\`\`

**Close codes**

| code | error codes |
|---|---|
| 1000 | after \`session_end\` |
| 1001 | \`draining\`: the server is shutting down |
| 1008 | query: \`deprecated_parameter\`, \`unsupported_language\`, \`unsupported_encoding\`, \`missing_parameter\`, \`invalid_parameter\`; credential: \`unauthorized\`, \`permission_denied\`; messages: \`handshake_required\`, \`handshake_timeout\`, \`invalid_handshake\`, \`invalid_message\`, \`flow_violation\`, \`resume_failed\`, \`session_taken_over\`, \`slow_consumer\`, \`idle_timeout\`, \`max_session\`; audio: \`wrong_encoding\`, \`unsupported_container\`, \`unsupported_audio\`, \`bad_audio\` |
| 1009 | \`frame_too_large\` |
| 1011 | \`engine_failed\`, \`engine_stalled\`, \`finalize_timeout\`, \`internal_error\` |
| 1013 | \`capacity\` (with \`retry_after_ms\`), \`unavailable\` |

With \`"flow": "credit"\` the client sends at most \`credit_bytes\` of the last \`audio_ack\` in total. After any close code
except 1000, 1001 and 1005 the session stays open for 30 seconds; the client continues with \`resume\` at \`received_bytes\`.
These numbers are defaults; PROTOCOL.md beside the source code lists every field, default and limit.`
