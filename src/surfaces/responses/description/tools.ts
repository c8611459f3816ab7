import { type TObject, Type } from '@sinclair/typebox'
import { describeObject, ofOtherType } from '#api/described.ts'
import {
  allowedTools,
  customTool,
  fileSearchTool,
  functionTool,
  grammarFormat,
  mcpApprovalFilters,
  mcpTool,
  mcpToolFilter,
  namespaceTool,
  rankingOptions,
  toolChoiceByName,
  toolChoiceByServer,
} from '#surfaces/responses/schema.ts'
import { literals } from './content.ts'

/** The tools of a request, and the choice among them. */

const named = (type: string) => ({ type: Type.Literal(type) })
const names = (description: string) => Type.Array(Type.String(), { description })

const functionToolBody = describeObject(
  functionTool,
  {
    name: 'Once in a request, or in its namespace.',
    description: 'What the model reads about it.',
    parameters: 'A JSON Schema of the arguments.',
    strict: 'Whether arguments must keep to the schema.',
  },
  { own: named('function'), $id: 'FunctionTool', description: 'A function that the caller runs.' },
)

const textFormat = Type.Object(named('text'), { additionalProperties: true })
const grammar = describeObject(
  grammarFormat,
  { syntax: 'Its language.', definition: 'The grammar.' },
  { own: named('grammar') },
)

const customToolBody = describeObject(
  customTool,
  {
    name: 'Once in a request, or in its namespace.',
    description: 'What the model reads about it.',
    format: Type.Union([textFormat, grammar], { description: 'What the input looks like.' }),
  },
  {
    own: named('custom'),
    $id: 'CustomTool',
    description:
      'A tool that takes text instead of JSON. Where an upstream has none, it is a function to it.',
  },
)

const inner: readonly TObject[] = [functionToolBody, customToolBody]
const namespace = describeObject(
  namespaceTool,
  {
    name: 'Of the group.',
    description: 'What the model reads about the group.',
    tools: Type.Array(Type.Union([...inner, ofOtherType(inner, { description: 'Left out.' })]), {
      description: 'Functions and custom tools; what is of another type is left out.',
    }),
  },
  { own: named('namespace'), $id: 'NamespaceTool', description: 'Tools in a group.' },
)

const toolFilter = (description: string) =>
  describeObject(
    mcpToolFilter,
    {
      tool_names: names('These.'),
      read_only: 'Those that the server calls read-only, or those that it does not.',
    },
    { description },
  )

const mcpToolBody = describeObject(
  mcpTool,
  {
    server_label: 'A name for the server, once in a request.',
    server_url:
      'Of a server that the configuration has, or whose host it lets callers name: https and public. May be left out where the label alone names one.',
    server_description: 'What the model reads about it.',
    authorization: 'A token, sent to the server as `Bearer`. No answer repeats it.',
    headers: Type.Record(Type.String(), Type.String(), {
      description: 'Sent to the server. No answer repeats them.',
    }),
    allowed_tools: Type.Union(
      [names('By name.'), toolFilter('By name, by being read-only, or by both.')],
      { description: 'Which of its tools the model may call; absent: all of them.' },
    ),
    require_approval: Type.Union(
      [
        Type.Literal('always'),
        Type.Literal('never'),
        describeObject(mcpApprovalFilters, {
          always: toolFilter('These wait for approval.'),
          never: toolFilter('These do not.'),
        }),
      ],
      { description: 'Which calls wait for an `mcp_approval_response`; absent: all of them.' },
    ),
  },
  {
    own: named('mcp'),
    $id: 'McpTool',
    description: 'A remote server whose tools the gateway calls itself, before it goes on.',
  },
)

const fileSearchToolBody = describeObject(
  fileSearchTool,
  {
    vector_store_ids: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      minItems: 1,
      maxItems: 32,
      description: 'Collections by id or name. Only what the caller may read is searched.',
    }),
    filters:
      'As those of a search in a vector store: `eq`, `in`, `and`, and `or` over the values of one key.',
    max_num_results: 'The most passages of one search; absent: as many as the configuration says.',
    ranking_options: describeObject(rankingOptions, {
      ranker: '`none`: passages are not reranked. Anything else: as the configuration says.',
      score_threshold: 'Passages below it are left out.',
    }),
  },
  {
    own: named('file_search'),
    $id: 'FileSearchTool',
    description: 'Collections that the gateway searches for the model. Once in a request.',
  },
)

const known: readonly TObject[] = [
  ...[functionToolBody, customToolBody, namespace, mcpToolBody, fileSearchToolBody],
]

export const tool = Type.Union(
  [
    ...known,
    ofOtherType(known, {
      $id: 'OtherTool',
      description: 'Of any other type: left out, and no error.',
    }),
  ],
  { $id: 'Tool' },
)

const byName = { name: 'The tool.', namespace: 'Its namespace, where it has one.' }
const nameOf = (types: readonly string[], description: string) =>
  describeObject(toolChoiceByName, byName, { own: { type: literals(types, description) } })
const byServer = describeObject(
  toolChoiceByServer,
  { server_label: 'The server.', name: 'One of its tools; absent: any of them.' },
  { own: named('mcp') },
)
const byFileSearch = Type.Object(named('file_search'), { additionalProperties: true })
const listed: readonly TObject[] = [
  nameOf(['function', 'custom', 'namespace'], 'A namespace stands for all of its tools.'),
  byServer,
  byFileSearch,
]

export const toolChoice = Type.Union(
  [
    literals(['none', 'auto', 'required'], 'Whether the model may, or has to, call a tool.'),
    nameOf(['function', 'custom'], 'This tool has to be called.'),
    byServer,
    byFileSearch,
    describeObject(
      allowedTools,
      {
        mode: 'Whether one of them has to be called; absent: `auto`.',
        tools: Type.Array(
          Type.Union([
            ...listed,
            ofOtherType(listed, { description: 'A tool that was left out.' }),
          ]),
          { description: 'Of the tools of the request, those that may be called.' },
        ),
      },
      { own: named('allowed_tools') },
    ),
  ],
  {
    $id: 'ToolChoice',
    description: 'It can only name tools that the request gives. Absent: `auto`.',
  },
)
