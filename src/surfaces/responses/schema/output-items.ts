import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { ofOtherType } from '#api/described.ts'
import { oneOf } from '#api/request-schema.ts'
import { nullable } from '#api/shapes.ts'

/** The output items of a response. */

const item = (type: string, $id: string, fields: TProperties, description?: string) =>
  Type.Object(
    {
      id: Type.String({ description: 'The id of the item, constant throughout the stream.' }),
      type: Type.Literal(type),
      ...fields,
    },
    { $id, ...(description === undefined ? {} : { description }) },
  )

const status = oneOf(
  ['in_progress', 'completed', 'incomplete'],
  '`incomplete`: the item was cut off.',
)

export const annotation = Type.Union(
  [
    Type.Object({
      type: Type.Literal('url_citation'),
      url: Type.String(),
      title: Type.String(),
      start_index: Type.Integer({ description: 'Offset in the text, as is `end_index`.' }),
      end_index: Type.Integer(),
    }),
    Type.Object({
      type: Type.Literal('file_citation'),
      file_id: Type.String(),
      filename: Type.String(),
      index: Type.Integer({ description: 'Offset in the text.' }),
    }),
    Type.Object({
      type: Type.Literal('container_file_citation'),
      container_id: Type.String(),
      file_id: Type.String(),
      filename: Type.String(),
      start_index: Type.Integer({ description: 'Offset in the text, as is `end_index`.' }),
      end_index: Type.Integer(),
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
  { description: 'Only if `include` requests them.' },
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
  phase: Type.Optional(Type.String({ description: 'Reported by some models.' })),
})

const namespace = Type.Optional(
  Type.String({ description: 'The namespace of the tool, if it has one.' }),
)
const callId = Type.String({ description: 'Send the output of the tool back with this id.' })

const asynchronous = Type.Optional(
  Type.Boolean({ description: 'Of an asynchronous tool, whose result may be sent later.' }),
)

const functionCall = item('function_call', 'FunctionCall', {
  status,
  call_id: callId,
  name: Type.String(),
  arguments: Type.String({ description: 'JSON, as the model wrote it.' }),
  namespace,
  async: asynchronous,
})

const customToolCall = item('custom_tool_call', 'CustomToolCall', {
  status,
  call_id: callId,
  name: Type.String(),
  input: Type.String(),
  namespace,
  async: asynchronous,
})

const reasoning = item(
  'reasoning',
  'Reasoning',
  {
    summary: Type.Array(summaryPart, { description: 'A summary of the reasoning, in parts.' }),
    content: Type.Optional(
      Type.Array(Type.Object({ type: Type.Literal('reasoning_text'), text: Type.String() }), {
        description: 'The reasoning text, if the model discloses it.',
      }),
    ),
    encrypted_content: Type.Optional(
      Type.String({
        description: 'Replaces `content` if `include` requests it. Send it back unchanged.',
      }),
    ),
  },
  'The reasoning of a model.',
)

const compaction = item(
  'compaction',
  'Compaction',
  { encrypted_content: Type.String({ description: 'Can be sent back by the same user only.' }) },
  'Replaces everything before it.',
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
  error: Type.Optional(Type.Unknown({ description: 'Why the tools could not be listed.' })),
})

const mcpCall = item('mcp_call', 'McpCall', {
  ...call,
  status: Type.Optional(Type.String()),
  approval_request_id: Type.Optional(nullable(Type.String(), 'The approval request of the call.')),
  output: Type.Optional(nullable(Type.String(), 'The result of the tool.')),
  error: Type.Optional(Type.Unknown({ description: 'Why the call failed; null if it succeeded.' })),
})

const approvalRequest = item(
  'mcp_approval_request',
  'McpApprovalRequest',
  call,
  'A call that waits for approval: send an `mcp_approval_response` in the next request.',
)

const fileSearchCall = item('file_search_call', 'FileSearchCall', {
  status: Type.String({
    description: 'For example `in_progress`, `searching`, `completed` or `failed`.',
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
          attributes: Type.Optional(nullable(Type.Object({}), 'The attributes of the file.')),
          page: Type.Optional(
            Type.Integer({ description: 'The page in the file, if it has pages.' }),
          ),
        }),
      ),
      'The results; null unless `include` requests them.',
    ),
  ),
})

const known: readonly TObject[] = [
  message,
  functionCall,
  customToolCall,
  reasoning,
  compaction,
  mcpListTools,
  mcpCall,
  approvalRequest,
  fileSearchCall,
]

const foreign = ofOtherType(
  known,
  {
    $id: 'UpstreamToolItem',
    description:
      'A tool that the upstream ran itself, such as `web_search_call`, in the format of the upstream.',
  },
  { id: Type.String({ description: 'Generated by the gateway.' }) },
)

export const outputItem: TSchema = Type.Union([...known, foreign], { $id: 'OutputItem' })
