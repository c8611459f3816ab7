import { type TProperties, Type } from '@sinclair/typebox'
import { messagesErrorBody } from '#api/error-shapes.ts'
import {
  blockCitation,
  contentBlock,
  endFields,
  endUsage,
  messageObject,
} from './message-object.ts'

/** The events of a stream. */

const open = { additionalProperties: true }

const event = (type: string, $id: string, fields: TProperties) =>
  Type.Object({ type: Type.Literal(type), ...fields }, { $id, ...open })

const index = { index: Type.Integer({ description: 'The place of the block.' }) }

const delta = (type: string, fields: TProperties) =>
  Type.Object({ type: Type.Literal(type), ...fields }, open)

const blockDelta = Type.Union(
  [
    delta('text_delta', { text: Type.String() }),
    delta('thinking_delta', { thinking: Type.String() }),
    delta('signature_delta', { signature: Type.String({ description: 'The whole of it.' }) }),
    delta('input_json_delta', {
      partial_json: Type.String({ description: 'A piece of the JSON of `input`.' }),
    }),
    delta('citations_delta', { citation: blockCitation }),
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
    }),
    event('message_stop', 'MessageStopEvent', {}),
    event('ping', 'PingEvent', {}),
    failure,
  ],
  { $id: 'MessageStreamEvent' },
)

/** What stands in the description of the route that streams. */
export const aboutEvents = `The stream is \`text/event-stream\`: each event has its type as \`event:\` and its JSON as \`data:\`.

| Event | When |
|---|---|
| \`message_start\` | At the beginning: the message without content, with an estimate of its input. |
| \`content_block_start\` | A block begins; blocks never overlap. |
| \`content_block_delta\` | More of it: \`text_delta\`, \`thinking_delta\`, \`signature_delta\`, \`input_json_delta\`, \`citations_delta\`; \`compaction_delta\` from upstreams of the same protocol. |
| \`content_block_stop\` | It is whole. |
| \`message_delta\` | Why the message ends, and what was counted. |
| \`message_stop\` | The end. |
| \`ping\` | A sign of life, at any place. In a long silence an empty delta is one too. |
| \`error\` | The end instead of \`message_delta\` and \`message_stop\`. |

A failure before the first event is an HTTP status. A reader that takes nothing is cut off in time.`
