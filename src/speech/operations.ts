import { Type } from '@sinclair/typebox'
import { json, operation } from '#docs/operation.ts'
import { sessionQuery } from './session/query.ts'
import { type ServerFrame, serverFrame } from './session/server-frames.ts'

const final: ServerFrame = {
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
const refusal: ServerFrame = {
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
const start = { type: 'session_start', options: { vocabulary: ['Sluice'], flow: 'credit' } }

export const speechOperation = operation({
  tag: 'Speech',
  summary: 'Speech to text over a WebSocket',
  description: `Speech goes in as it is spoken, transcripts come out as JSON. Points in
time are seconds from the first sample of the session, durations are whole milliseconds.

The handshake of the WebSocket succeeds for everybody, because a browser cannot see why one failed. What is
wrong with the query or the credential is told in an \`error\` frame, and the socket is closed; the reason of
every close is the code of that error. \`language\`, the former name of \`lang\`, is a \`deprecated_parameter\`.

**The client sends**, first of all and within 10 seconds:

\`\`\`json
${JSON.stringify(start)}
\`\`\`

| frame | fields |
|---|---|
| \`session_start\` | all optional: \`audio\` (\`container\`, \`channels\`), \`options\` (\`partials\`, \`words\`, \`max_partial_hz\`, \`endpointing_ms\`, \`vocabulary\`, \`flow\`, \`live\`), \`resume\` (\`session_id\`, \`token\`, \`last_seq\`), \`metadata\` |
| binary | audio, in messages of any size up to 256 KiB; before \`session_ready\` it is kept as far as it came |
| \`finalize\` | \`id\`: finals of all that came before, then \`finalized\` |
| \`keepalive\` | a pause is meant; without it and without audio a session ends after 30 seconds |
| \`session_end\`, or an empty binary message | the rest is decoded, its finals follow, then \`session_end\` |

**The server sends** frames with a \`type\` and a number \`seq\` (1, 2, 3 …):

| frame | |
|---|---|
| \`session_ready\` | the engine, the audio as it was understood, limits, and what it takes to resume |
| \`speech_start\` | somebody speaks |
| \`transcript\` | a partial, which the next one of its \`segment\` replaces, or a final, which never changes and is never dropped |
| \`finalized\`, \`audio_ack\` | how far the audio is |
| \`warning\` | \`engine_lagging\`, \`engine_mute\`, \`engine_rollover\`, \`engine_waiting\`, \`audio_lost\`, \`unknown_fields\`, \`frames_forgotten\` |
| \`error\` | why the session ends |
| \`session_end\` | \`stats\`, in which every millisecond is accounted for: covered by a final, silence, or \`untranscribed_ms\` with its \`gaps\` |

\`\`\`json
${JSON.stringify(final)}
\`\`\`

\`\`\`json
${JSON.stringify(refusal)}
\`\`\`

**Closing**

| close | codes |
|---|---|
| 1000 | after \`session_end\` |
| 1001 | \`draining\`: the server stops |
| 1008 | the query: \`deprecated_parameter\`, \`unsupported_language\`, \`unsupported_encoding\`, \`missing_parameter\`, \`invalid_parameter\`; the caller: \`unauthorized\`, \`permission_denied\`; the messages: \`handshake_required\`, \`handshake_timeout\`, \`invalid_handshake\`, \`invalid_message\`, \`flow_violation\`, \`resume_failed\`, \`session_taken_over\`, \`slow_consumer\`, \`idle_timeout\`, \`max_session\`; the audio: \`wrong_encoding\`, \`unsupported_container\`, \`unsupported_audio\`, \`bad_audio\` |
| 1009 | \`frame_too_large\` |
| 1011 | \`engine_failed\`, \`engine_stalled\`, \`finalize_timeout\`, \`internal_error\` |
| 1013 | \`capacity\` (with \`retry_after_ms\`), \`unavailable\` |

With \`"flow": "credit"\` the client sends no more than the \`credit_bytes\` of the last \`audio_ack\` in all.
After a close other than 1000, 1001 and 1005 a session waits 30 seconds for its client, who goes on with
\`resume\` at \`received_bytes\`. The numbers here are defaults; the file PROTOCOL.md beside the code has every
field, default and limit.`,
  query: sessionQuery,
  headers: Type.Object({ upgrade: Type.Literal('websocket') }),
  answers: {
    101: {
      description: 'The socket is open. `SpeechServerFrame` is what the server sends.',
      content: json(serverFrame, final),
    },
  },
  errors: {
    invalid_request: 'The handshake of the WebSocket is not right.',
    upgrade_required: 'Ask for a WebSocket here.',
  },
})
