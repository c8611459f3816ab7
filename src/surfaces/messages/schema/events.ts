import { type TProperties, Type } from '@sinclair/typebox'
import { messagesErrorBody } from '#api/error-shapes.ts'
import {
  citation,
  contentBlock,
  endFields,
  endUsage,
  messageObject,
  messageWarning,
} from './message-object.ts'

/** The events of a message stream. */

const open = { additionalProperties: true }

const event = (type: string, $id: string, fields: TProperties) =>
  Type.Object({ type: Type.Literal(type), ...fields }, { $id, ...open })

const index = { index: Type.Integer({ description: 'The index of the block.' }) }

const delta = (type: string, fields: TProperties) =>
  Type.Object({ type: Type.Literal(type), ...fields }, open)

const blockDelta = Type.Union(
  [
    delta('text_delta', { text: Type.String() }),
    delta('thinking_delta', { thinking: Type.String() }),
    delta('signature_delta', {
      signature: Type.String({ description: 'The complete signature.' }),
    }),
    delta('input_json_delta', {
      partial_json: Type.String({ description: 'A fragment of the JSON of `input`.' }),
    }),
    delta('citations_delta', { citation }),
    delta('compaction_delta', { content: Type.Union([Type.String(), Type.Null()]) }),
  ],
  { $id: 'BlockDelta' },
)

const failure = Type.Object(
  {
    type: Type.Literal('error'),
    error: Type.Object(
      {
        ...messagesErrorBody.properties.error.properties,
        details: Type.Optional(messagesErrorBody.properties.error.properties.details),
      },
      open,
    ),
  },
  { $id: 'MessageErrorEvent', ...open },
)

export const messageEvent = Type.Union(
  [
    event('message_start', 'MessageStartEvent', { message: messageObject }),
    event('content_block_start', 'BlockStartEvent', { ...index, content_block: contentBlock }),
    event('content_block_delta', 'BlockDeltaEvent', { ...index, delta: blockDelta }),
    event('content_block_stop', 'BlockStopEvent', index),
    event('message_delta', 'MessageDeltaEvent', {
      delta: Type.Object(endFields, open),
      usage: endUsage,
      warning: Type.Optional(messageWarning),
    }),
    event('message_stop', 'MessageStopEvent', {}),
    event('ping', 'PingEvent', {}),
    failure,
  ],
  { $id: 'MessageStreamEvent' },
)

/** Part of the description of the endpoint that streams events. */
export const eventsDescription = `The stream is \`text/event-stream\`: each event has its type as \`event:\` and its JSON as \`data:\`.

| Event | When |
|---|---|
| \`message_start\` | At the beginning: the message without content, with an estimate of its input tokens. |
| \`content_block_start\` | A block begins; blocks never overlap. |
| \`content_block_delta\` | An addition to the block: \`text_delta\`, \`thinking_delta\`, \`signature_delta\`, \`input_json_delta\`, \`citations_delta\`; \`compaction_delta\` from upstreams of the same protocol. |
| \`content_block_stop\` | The block is complete. |
| \`message_delta\` | The stop reason and the usage. |
| \`message_stop\` | The end. |
| \`ping\` | Heartbeat, at any place. During a long silence an empty delta serves as one too. |
| \`error\` | Ends the stream instead of \`message_delta\` and \`message_stop\`. |

A failure before the first event is an HTTP error status. Clients that stop reading are disconnected.`
