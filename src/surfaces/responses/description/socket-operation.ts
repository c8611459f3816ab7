import { Type } from '@sinclair/typebox'
import { json, operation } from '#docs/operation.ts'
import { streamEvent } from './events.ts'
import { sampleEvents, sampleRequest } from './samples.ts'

const streamId = Type.Optional(
  Type.String({ maxLength: 256, description: 'As the request named itself.' }),
)

/** Tells of a failure before the first event of a request, or outside of any. */
const refusalFrame = Type.Object(
  {
    type: Type.Literal('error'),
    status: Type.Integer({ description: 'What it would be over HTTP.' }),
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

export const serverFrame = Type.Union(
  [Type.Intersect([streamEvent, Type.Object({ stream_id: streamId })]), refusalFrame],
  { $id: 'ResponseServerFrame' },
)

const asked = JSON.stringify({
  type: 'response.create',
  ...sampleRequest,
  store: false,
  stream_id: 'a',
})
const delta = JSON.stringify({ ...sampleEvents[4], stream_id: 'a' })
const refusal = JSON.stringify({
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

export const socketOperation = operation({
  tag: 'Responses',
  summary: 'Create responses over a WebSocket',
  description: `One connection for many requests, answered one after the other; up to 8 may wait.

**The client sends** text frames. \`response.create\` is the body of \`POST /v1/responses\`
(\`CreateResponse\`) with a \`type\` and, if it likes, a \`stream_id\`; \`stream\` is ignored, and \`background\` is
refused:

\`\`\`json
${asked}
\`\`\`

With \`"generate": false\` the input is only remembered, for a request that follows by
\`previous_response_id\`. What is not stored can be followed on the same connection: it remembers the last
8 responses. \`response.processed\` is taken and ignored. There are no frames for cancelling; close the
connection, or \`POST /v1/responses/{id}/cancel\` for one that is stored.

**The server sends** the events of \`POST /v1/responses\` as JSON, each in a text frame of its own and without
\`[DONE]\`:

\`\`\`json
${delta}
\`\`\`

What goes wrong before the first event of a request, or in a frame that is not understood, is told in one
frame, and the connection stays:

\`\`\`json
${refusal}
\`\`\`

**Closing.** A connection lives for an hour, ends with the code \`websocket_connection_limit_reached\` and is
closed with 1000. It is closed with 1008 when the caller lost their right, 1009 for a frame that is too long,
1012 when the server stops. A client that leaves pings unanswered for two minutes, or does not read, is cut
off. The configuration may set other limits.

Clients that cannot set headers send their credential in the query, as \`token\`, or as the subprotocol
\`openai-insecure-api-key.<credential>\`.`,
  headers: Type.Object({
    upgrade: Type.Literal('websocket'),
    'sec-websocket-protocol': Type.Optional(
      Type.String({
        description:
          'Subprotocols. One of them is answered: the first that does not hold a credential.',
      }),
    ),
  }),
  answers: {
    101: {
      description: 'The connection is open. `ResponseServerFrame` is what the server sends.',
      content: json(serverFrame, { ...sampleEvents[4], stream_id: 'a' }),
    },
  },
  errors: {
    invalid_request: 'The handshake of the WebSocket is not right.',
    upgrade_required: 'Ask for a WebSocket here, or POST the request.',
    too_many_streams: 'The server has no room for another connection.',
  },
})
