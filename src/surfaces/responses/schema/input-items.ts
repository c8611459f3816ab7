import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { ofOtherType } from '#api/described.ts'
import {
  anyObject,
  arrayOf,
  boolean,
  nonEmptyString,
  object,
  oneOf,
  optional,
  string,
  typed,
} from '#api/request-schema.ts'
import { stringOrParts } from './content.ts'

/** The input items of a request, which are also the items of a conversation. */

export const messageItem = object(
  {
    type: optional(Type.Literal('message')),
    role: oneOf(
      ['user', 'assistant', 'system', 'developer'],
      '`system` and `developer` instruct the model, `user` asks, `assistant` is model output.',
    ),
    content: stringOrParts('Text, or content parts.'),
    phase: optional(string('Send back the value of the response unchanged.')),
  },
  { $id: 'MessageInput' },
)

const callFields = {
  call_id: nonEmptyString('Links the output to its call.'),
  name: nonEmptyString('The name of the tool.'),
  namespace: optional(nonEmptyString('The namespace in which the tool was defined.')),
  async: optional(boolean('Whether the tool is asynchronous.')),
}
const callArguments = string('JSON, as the model wrote it.')

export const functionCallItem = object(
  { type: Type.Literal('function_call'), ...callFields, arguments: callArguments },
  { $id: 'FunctionCallInput' },
)

export const customToolCallItem = object(
  {
    type: Type.Literal('custom_tool_call'),
    ...callFields,
    input: string('The text that the model wrote.'),
  },
  { $id: 'CustomToolCallInput' },
)

const toolOutput = <Name extends string>(type: Name, $id: string) =>
  object(
    {
      type: Type.Literal(type),
      call_id: nonEmptyString('The id of an earlier call, in the input or in its history.'),
      output: stringOrParts('The result of the tool.'),
    },
    { $id },
  )
export const functionCallOutputItem = toolOutput('function_call_output', 'FunctionCallOutput')
const customToolCallOutputItem = toolOutput('custom_tool_call_output', 'CustomToolCallOutput')

const textObjects = (description: string) =>
  optional(arrayOf(object({ text: Type.String() }), description))

export const reasoningItem = object(
  {
    type: Type.Literal('reasoning'),
    summary: textObjects('The parts of the summary.'),
    content: textObjects('The reasoning text, where the model discloses it.'),
    encrypted_content: optional(
      string(
        'Encrypted reasoning. Payloads of this gateway are decrypted only for the user who received them; those of another service are forwarded unchanged.',
      ),
    ),
  },
  {
    $id: 'ReasoningInput',
    description: 'Send it back together with the calls that followed it.',
  },
)

export const compactionItem = object(
  {
    type: Type.Literal('compaction'),
    encrypted_content: nonEmptyString('The value from the response, unchanged.'),
  },
  {
    $id: 'CompactionInput',
    description: 'Replaces everything before it; earlier items may be sent or omitted.',
  },
)

const compactionTrigger = typed('compaction_trigger', {
  $id: 'CompactionTrigger',
  description: 'As the last item: the response is a compaction of the items before it.',
})

export const itemReference = object(
  {
    type: Type.Literal('item_reference'),
    id: nonEmptyString('The id of an item of a stored response or of a conversation.'),
  },
  {
    $id: 'ItemReference',
    description: 'Refers to a stored item instead of sending it. `type` may be omitted.',
  },
)

const mcpServerLabel = nonEmptyString('The label of the MCP server.')

export const mcpListedTool = object({
  name: nonEmptyString('The name of the tool.'),
  description: optional(string('Describes the tool to the model.')),
  input_schema: anyObject('JSON Schema of the arguments.'),
  annotations: optional(anyObject('Hints of the server, such as `readOnlyHint`.')),
})

export const mcpListItem = object(
  {
    type: Type.Literal('mcp_list_tools'),
    server_label: mcpServerLabel,
    tools: arrayOf(
      mcpListedTool,
      'The tools of the server. While the list is part of the input, the server is not asked again.',
    ),
    error: Type.Optional(
      Type.Unknown({ description: 'Why the list is missing. The server is asked again.' }),
    ),
  },
  { $id: 'McpListToolsInput' },
)

export const mcpCallItem = object(
  {
    type: Type.Literal('mcp_call'),
    server_label: mcpServerLabel,
    name: nonEmptyString('The name of the tool.'),
    arguments: callArguments,
    approval_request_id: optional(nonEmptyString('The approval request of the call.')),
    output: optional(string('The result of the tool.')),
    error: Type.Optional(Type.Unknown({ description: 'Why the call failed.' })),
  },
  { $id: 'McpCallInput' },
)

export const mcpApprovalRequestItem = object(
  {
    type: Type.Literal('mcp_approval_request'),
    id: Type.Optional(nonEmptyString('The id that the approval response refers to.')),
    server_label: mcpServerLabel,
    name: nonEmptyString('The name of the tool.'),
    arguments: callArguments,
  },
  { $id: 'McpApprovalRequestInput' },
)

export const mcpApprovalResponseItem = object(
  {
    type: Type.Literal('mcp_approval_response'),
    approval_request_id: nonEmptyString('The id of an earlier approval request.'),
    approve: boolean('Whether the call may run. It runs at the beginning of this response.'),
    reason: optional(string('Told to the model when the call is denied.')),
  },
  { $id: 'McpApprovalResponse' },
)

export const fileSearchCallItem = object(
  {
    type: Type.Literal('file_search_call'),
    queries: optional(arrayOf(Type.String(), 'The search queries.')),
    results: optional(
      arrayOf(
        object({
          file_id: Type.String(),
          filename: Type.Optional(Type.String()),
          text: Type.String(),
          page: Type.Optional(Type.Integer()),
        }),
        'The search results; without them the model is asked to search again.',
      ),
    ),
  },
  { $id: 'FileSearchCallInput' },
)

const known: readonly TObject[] = [
  messageItem,
  functionCallItem,
  functionCallOutputItem,
  customToolCallItem,
  customToolCallOutputItem,
  reasoningItem,
  compactionItem,
  compactionTrigger,
  itemReference,
  mcpListItem,
  mcpCallItem,
  mcpApprovalRequestItem,
  mcpApprovalResponseItem,
  fileSearchCallItem,
]

const other = ofOtherType(known, {
  $id: 'OtherInputItem',
  description: 'Items of other types are stored with the rest and not sent to a model.',
})

export const inputItem: TSchema = Type.Union([...known, other], {
  $id: 'InputItem',
  description: 'Items may carry an `id` and a `status`, as output items do.',
})

/** An item as it is stored and listed. */
export const storedItem: TSchema = Type.Union(
  [...known, other].map(({ $id, properties }) =>
    Type.Object(
      {
        ...properties,
        ...($id === messageItem.$id ? { type: Type.Literal('message') } : {}),
        id: Type.String({ description: 'The id that was sent, or a generated one.' }),
      },
      { $id: `Stored${$id?.replace(/Input$/, '')}`, additionalProperties: true },
    ),
  ),
  { $id: 'Item' },
)
