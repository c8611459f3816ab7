import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { basePermission } from '#auth/permissions.ts'
import { sessionQuery } from './session/query.ts'
import { type ServerFrame, serverFrame } from './session/server-frames.ts'
import {
  acceptSocket,
  invalidUpgrade,
  type UpgradeDeps,
  upgradeRequired,
} from './session/socket-endpoints.ts'

/**
 * `GET /v1/stt` as a WebSocket. Every upgrade is accepted, and refused over the socket if necessary,
 * because browsers do not expose the response of a failed handshake.
 */
export function speechEndpoints(deps: UpgradeDeps): Endpoint[] {
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
      handle: (arrival) => acceptSocket(deps, arrival),
    }),
  ]
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
| 1008 | query: \`deprecated_parameter\`, \`unsupported_language\`, \`unsupported_encoding\`, \`missing_parameter\`, \`invalid_parameter\`, \`engine_not_found\`; credential: \`unauthorized\`, \`permission_denied\`; messages: \`handshake_required\`, \`handshake_timeout\`, \`invalid_handshake\`, \`invalid_message\`, \`flow_violation\`, \`resume_failed\`, \`session_taken_over\`, \`slow_consumer\`, \`idle_timeout\`, \`max_session\`; audio: \`wrong_encoding\`, \`unsupported_container\`, \`unsupported_audio\`, \`bad_audio\` |
| 1009 | \`frame_too_large\` |
| 1011 | \`engine_failed\`, \`engine_stalled\`, \`finalize_timeout\`, \`internal_error\` |
| 1013 | \`capacity\` (with \`retry_after_ms\`), \`unavailable\` |

With \`"flow": "credit"\` the client sends at most \`credit_bytes\` of the last \`audio_ack\` in total. After any close code
except 1000, 1001 and 1005 the session stays open for 30 seconds; the client continues with \`resume\` at \`received_bytes\`.
These numbers are defaults; PROTOCOL.md beside the source code lists every field, default and limit.`
