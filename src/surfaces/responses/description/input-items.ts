import { type TObject, Type } from '@sinclair/typebox'
import { describeObject, ofOtherType } from '#api/described.ts'
import {
  compactionItem,
  customToolCallItem,
  fileSearchCallItem,
  functionCallItem,
  itemReference,
  mcpApprovalRequestItem,
  mcpApprovalResponseItem,
  mcpCallItem,
  mcpListedTool,
  mcpListItem,
  messageItem,
  reasoningItem,
  toolOutputItem,
} from '#surfaces/responses/schema.ts'
import { textOrParts } from './content.ts'

/** What the input of a request is made of, and the items of a conversation. */

const named = (type: string) => ({ type: Type.Literal(type) })

const message = describeObject(
  messageItem,
  {
    role: '`system` and `developer` instruct, `user` asks, `assistant` is what a model said.',
    content: textOrParts('A text, or parts.'),
    phase: 'What stands in the answer is sent back as it is.',
  },
  {
    own: { type: Type.Optional(Type.Union([Type.Literal('message'), Type.Null()])) },
    $id: 'MessageInput',
  },
)

const callFields = {
  call_id: 'By which the output names its call.',
  name: 'The tool.',
  namespace: 'The namespace that the tool was given in.',
}

const functionCall = describeObject(
  functionCallItem,
  { ...callFields, arguments: 'JSON, as the model wrote it.' },
  { own: named('function_call'), $id: 'FunctionCallInput' },
)

const customToolCall = describeObject(
  customToolCallItem,
  { ...callFields, input: 'The text that the model wrote.' },
  { own: named('custom_tool_call'), $id: 'CustomToolCallInput' },
)

const outputFields = {
  call_id: 'Of a call before it, in the input or in what it follows.',
  output: textOrParts('What the tool gave.'),
}

const functionOutput = describeObject(toolOutputItem, outputFields, {
  own: named('function_call_output'),
  $id: 'FunctionCallOutput',
})

const customOutput = describeObject(toolOutputItem, outputFields, {
  own: named('custom_tool_call_output'),
  $id: 'CustomToolCallOutput',
})

const texts = (description: string) =>
  Type.Array(Type.Object({ text: Type.String() }, { additionalProperties: true }), { description })

const reasoning = describeObject(
  reasoningItem,
  {
    summary: texts('Its parts.'),
    content: texts('The thoughts themselves, where the model shows them.'),
    encrypted_content:
      'Sealed thoughts. Ours are opened for the caller that got them alone; those of another service go to the upstream as they are.',
  },
  {
    own: named('reasoning'),
    $id: 'ReasoningInput',
    description: 'Send it back with the calls that followed it.',
  },
)

const compaction = describeObject(
  compactionItem,
  { encrypted_content: 'As it was answered.' },
  {
    own: named('compaction'),
    $id: 'CompactionInput',
    description: 'Stands for everything before it, which may be sent all the same or left out.',
  },
)

const compactionTrigger = Type.Object(named('compaction_trigger'), {
  $id: 'CompactionTrigger',
  additionalProperties: true,
  description: 'As the last item: the answer is a compaction of what is before it, and no more.',
})

const reference = describeObject(
  itemReference,
  { id: 'Of an item of a stored response or of a conversation.' },
  {
    own: named('item_reference'),
    $id: 'ItemReference',
    description: 'An item that is stored, named instead of sent. The `type` may be left out.',
  },
)

const mcpList = describeObject(
  mcpListItem,
  {
    server_label: 'The server.',
    tools: Type.Array(
      describeObject(mcpListedTool, {
        name: 'Its name.',
        description: 'What the model reads about it.',
        input_schema: 'A JSON Schema.',
        annotations: 'Hints of the server, such as `readOnlyHint`.',
      }),
      { description: 'Its tools. While they are here the server is not asked again.' },
    ),
    error: 'Where the server did not give its list; it is asked again then.',
  },
  { own: named('mcp_list_tools'), $id: 'McpListToolsInput' },
)

const mcpCall = describeObject(
  mcpCallItem,
  {
    server_label: 'The server.',
    name: 'The tool.',
    arguments: 'JSON, as the model wrote it.',
    approval_request_id: 'The request for approval that it ran after.',
    output: 'What the tool gave.',
    error: 'Why it gave nothing.',
  },
  { own: named('mcp_call'), $id: 'McpCallInput' },
)

const approvalRequest = describeObject(
  mcpApprovalRequestItem,
  {
    id: null,
    server_label: 'The server.',
    name: 'The tool.',
    arguments: 'JSON, as the model wrote it.',
  },
  {
    own: {
      ...named('mcp_approval_request'),
      id: Type.Optional(Type.String({ description: 'By which it is answered.' })),
    },
    $id: 'McpApprovalRequestInput',
  },
)

const approvalResponse = describeObject(
  mcpApprovalResponseItem,
  {
    approval_request_id: 'Of a request before it.',
    approve: 'Whether the call may run. It runs at the beginning of this response.',
    reason: 'What the model is told where it may not.',
  },
  { own: named('mcp_approval_response'), $id: 'McpApprovalResponse' },
)

const fileSearchCall = describeObject(
  fileSearchCallItem,
  {
    queries: Type.Array(Type.String(), { description: 'What was searched for.' }),
    results: Type.Array(
      Type.Object(
        {
          file_id: Type.String(),
          filename: Type.Optional(Type.String()),
          text: Type.String(),
          page: Type.Optional(Type.Integer()),
        },
        { additionalProperties: true },
      ),
      { description: 'What was found; without it the model is told to search again.' },
    ),
  },
  { own: named('file_search_call'), $id: 'FileSearchCallInput' },
)

const known: readonly TObject[] = [
  ...[message, functionCall, functionOutput, customToolCall, customOutput, reasoning],
  ...[compaction, compactionTrigger, reference],
  ...[mcpList, mcpCall, approvalRequest, approvalResponse, fileSearchCall],
]

const other = ofOtherType(known, {
  $id: 'OtherInputItem',
  description: 'Of any other type: kept with the rest, and no model is given it.',
})

export const inputItem = Type.Union([...known, other], {
  $id: 'InputItem',
  description: 'An `id` and a `status`, which items of answers have, may be sent with any of them.',
})

/** As it is kept, and shown in lists. */
export const keptItem = Type.Intersect(
  [
    inputItem,
    Type.Object(
      { id: Type.String({ description: 'As it was sent, or of ours.' }), type: Type.String() },
      { additionalProperties: true },
    ),
  ],
  { $id: 'Item' },
)
