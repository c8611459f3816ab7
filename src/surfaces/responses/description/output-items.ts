import { type TObject, type TProperties, Type } from '@sinclair/typebox'
import { ofOtherType } from '#api/described.ts'
import { nullable } from '#api/shapes.ts'
import { literals } from './content.ts'

/** What an answer is made of. */

const item = (type: string, $id: string, fields: TProperties, description?: string) =>
  Type.Object(
    {
      id: Type.String({ description: 'Of the item; it stays the same through the stream.' }),
      type: Type.Literal(type),
      ...fields,
    },
    { $id, ...(description === undefined ? {} : { description }) },
  )

const status = literals(['in_progress', 'completed', 'incomplete'], '`incomplete`: it was cut off.')

export const annotation = Type.Union(
  [
    Type.Object({
      type: Type.Literal('url_citation'),
      url: Type.String(),
      title: Type.String(),
      start_index: Type.Integer({ description: 'In the text, as `end_index` is.' }),
      end_index: Type.Integer(),
    }),
    Type.Object({
      type: Type.Literal('file_citation'),
      file_id: Type.String(),
      filename: Type.String(),
      index: Type.Integer({ description: 'In the text.' }),
    }),
  ],
  { $id: 'Annotation' },
)

const token = {
  token: Type.String(),
  logprob: Type.Number(),
  bytes: Type.Array(Type.Integer()),
}
export const logprobs = Type.Array(
  Type.Object({ ...token, top_logprobs: Type.Array(Type.Object(token)) }),
  { description: 'Only where they were asked for.' },
)

export const outputPart = Type.Union(
  [
    Type.Object(
      {
        type: Type.Literal('output_text'),
        text: Type.String(),
        annotations: Type.Array(annotation),
        logprobs,
      },
      { $id: 'OutputText' },
    ),
    Type.Object(
      { type: Type.Literal('refusal'), refusal: Type.String() },
      { $id: 'OutputRefusal' },
    ),
  ],
  { $id: 'OutputPart' },
)

export const summaryPart = Type.Object(
  { type: Type.Literal('summary_text'), text: Type.String() },
  { $id: 'SummaryPart' },
)

const message = item('message', 'OutputMessage', {
  status,
  role: Type.Literal('assistant'),
  content: Type.Array(outputPart, { description: 'One part, or none yet.' }),
  phase: Type.Optional(Type.String({ description: 'As some models tell it.' })),
})

const namespace = Type.Optional(
  Type.String({ description: 'Where the tool was given inside of one.' }),
)
const callId = Type.String({ description: 'Under which you send back what the tool gave.' })

const functionCall = item('function_call', 'FunctionCall', {
  status,
  call_id: callId,
  name: Type.String(),
  arguments: Type.String({ description: 'JSON, as the model wrote it.' }),
  namespace,
})

const customToolCall = item('custom_tool_call', 'CustomToolCall', {
  status,
  call_id: callId,
  name: Type.String(),
  input: Type.String(),
  namespace,
})

const reasoning = item(
  'reasoning',
  'Reasoning',
  {
    summary: Type.Array(summaryPart, { description: 'What is told of the thoughts, in parts.' }),
    content: Type.Optional(
      Type.Array(Type.Object({ type: Type.Literal('reasoning_text'), text: Type.String() }), {
        description: 'The thoughts themselves, where the model shows them.',
      }),
    ),
    encrypted_content: Type.Optional(
      Type.String({ description: 'In place of `content`, with `include`: for sending back.' }),
    ),
  },
  'The thoughts of a model.',
)

const compaction = item(
  'compaction',
  'Compaction',
  { encrypted_content: Type.String({ description: 'For sending back, by the same caller.' }) },
  'Stands for everything before it.',
)

const server = { server_label: Type.String() }
const call = {
  ...server,
  name: Type.String(),
  arguments: Type.String({ description: 'JSON, as the model wrote it.' }),
}

const mcpListTools = item('mcp_list_tools', 'McpListTools', {
  ...server,
  tools: Type.Array(
    Type.Object({
      name: Type.String(),
      description: Type.Optional(Type.String()),
      input_schema: Type.Object({}),
      annotations: Type.Optional(Type.Object({})),
    }),
  ),
  error: Type.Optional(Type.Unknown({ description: 'Why the list could not be had.' })),
})

const mcpCall = item('mcp_call', 'McpCall', {
  ...call,
  status: Type.Optional(Type.String()),
  approval_request_id: Type.Optional(
    nullable(Type.String(), 'The request for approval that it ran after.'),
  ),
  output: Type.Optional(nullable(Type.String(), 'What the tool gave.')),
  error: Type.Optional(Type.Unknown({ description: 'Why it gave nothing; null where it did.' })),
})

const approvalRequest = item(
  'mcp_approval_request',
  'McpApprovalRequest',
  call,
  'A call that waits. Answer it with an `mcp_approval_response` in the next request.',
)

const fileSearchCall = item('file_search_call', 'FileSearchCall', {
  status: Type.String({
    description: '`in_progress`, `searching`, `completed`, `failed` and such.',
  }),
  queries: Type.Array(Type.String()),
  results: Type.Optional(
    nullable(
      Type.Array(
        Type.Object({
          file_id: Type.String(),
          filename: Type.String(),
          score: Type.Number(),
          text: Type.String(),
          attributes: Type.Optional(nullable(Type.Object({}), 'Of the file.')),
          page: Type.Optional(Type.Integer({ description: 'In the file, where it has pages.' })),
        }),
      ),
      'What was found; null unless `include` asks for it.',
    ),
  ),
})

const known: readonly TObject[] = [
  ...[message, functionCall, customToolCall, reasoning, compaction],
  ...[mcpListTools, mcpCall, approvalRequest, fileSearchCall],
]

const foreign = ofOtherType(
  known,
  {
    $id: 'UpstreamToolItem',
    description:
      'What an upstream ran by itself, such as `web_search_call`, in the shape in which it tells it.',
  },
  { id: Type.String({ description: 'Of ours.' }) },
)

export const outputItem = Type.Union([...known, foreign], { $id: 'OutputItem' })
