import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { ofOtherType } from '#api/described.ts'
import {
  anyObject,
  arrayOf,
  boolean,
  expecting,
  integer,
  nonEmptyString,
  number,
  object,
  oneOf,
  optional,
  string,
  typed,
} from '#api/request-schema.ts'

/** The tools of a request, and `tool_choice`. */

export const toolName = (description: string) =>
  expecting(
    '1 to 64 letters, digits, underscores or dashes',
    Type.String({ description, pattern: '^[a-zA-Z0-9_-]{1,64}$' }),
  )
const uniqueName = toolName('Unique within the request, or within its namespace.')
const toolDescription = optional(string('Describes the tool to the model.'))

const asynchronous = optional(
  boolean('Whether the model goes on without the result of a call, which may be sent later.'),
)

export const functionTool = object(
  {
    type: Type.Literal('function'),
    name: uniqueName,
    description: toolDescription,
    parameters: optional(anyObject('JSON Schema of the arguments.')),
    strict: optional(boolean('Whether arguments must conform to the schema.')),
    async: asynchronous,
  },
  { $id: 'FunctionTool', description: 'A function that the client runs.' },
)

export const grammarFormat = object({
  type: Type.Literal('grammar'),
  syntax: oneOf(['lark', 'regex'], 'The language of the grammar.'),
  definition: nonEmptyString('The grammar.'),
})

export const customTool = object(
  {
    type: Type.Literal('custom'),
    name: uniqueName,
    description: toolDescription,
    format: optional(
      Type.Union([typed('text'), grammarFormat], { description: 'The format of the input.' }),
    ),
    async: asynchronous,
  },
  {
    $id: 'CustomTool',
    description:
      'A tool with text input instead of JSON. Upstreams without custom tools get it as a function.',
  },
)

const clientTools: readonly TObject[] = [functionTool, customTool]

export const namespaceTool = object(
  {
    type: Type.Literal('namespace'),
    name: toolName('The name of the group.'),
    description: optional(string('Describes the group to the model.')),
    tools: arrayOf(
      Type.Union([
        ...clientTools,
        ofOtherType(clientTools, { description: 'As outside of a namespace.' }),
      ]),
      'The tools of the group.',
    ),
  },
  { $id: 'NamespaceTool', description: 'A group of tools.' },
)

export const mcpToolFilter = object({
  tool_names: optional(arrayOf(Type.String(), 'The tools of these names.')),
  read_only: optional(
    boolean('Tools that the server declares read-only (true) or does not (false).'),
  ),
})
const filter = (description: string): TSchema => ({ ...mcpToolFilter, description })

export const mcpApprovalFilters = object({
  always: optional(filter('These calls wait for approval.')),
  never: optional(filter('These calls do not wait.')),
})

export const mcpTool = object(
  {
    type: Type.Literal('mcp'),
    server_label: expecting(
      'a letter, followed by up to 63 letters, digits, underscores or dashes',
      Type.String({
        description: 'A name for the server, unique within the request.',
        pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$',
      }),
    ),
    server_url: optional(
      nonEmptyString(
        'The URL of a configured server, or a public https URL on an allowed host. Optional if a configured server has this label.',
      ),
    ),
    server_description: optional(string('Describes the server to the model.')),
    authorization: optional(
      nonEmptyString('Sent to the server as a bearer token. Never part of a response.'),
    ),
    headers: optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'Sent to the server. Never part of a response.',
      }),
    ),
    allowed_tools: optional(
      expecting(
        'an array of names or an object',
        Type.Union(
          [
            arrayOf(Type.String(), 'The tools of these names.'),
            filter('The tools that match every condition.'),
          ],
          { description: 'The tools of the server that the model may call. Default: all.' },
        ),
      ),
    ),
    require_approval: optional(
      expecting(
        'always, never or an object of filters',
        Type.Union([Type.Literal('always'), Type.Literal('never'), mcpApprovalFilters], {
          description: 'The calls that wait for an `mcp_approval_response`. Default: all.',
        }),
      ),
    ),
  },
  {
    $id: 'McpTool',
    description: 'A remote MCP server whose tools the gateway runs itself.',
  },
)

export const rankingOptions = object({
  ranker: optional(
    string('`none` disables reranking. Any other value uses the configured reranker.'),
  ),
  score_threshold: optional(number(0, 1, 'Passages with a lower score are dropped.')),
})

export const fileSearchTool = object(
  {
    type: Type.Literal('file_search'),
    vector_store_ids: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      minItems: 1,
      maxItems: 32,
      description:
        'Collections, by id, `owner/name` or name; the response has their ids. Only collections that the user may read are searched.',
    }),
    filters: optional(
      anyObject(
        'As in a vector store search: `eq`, `in`, `and`, and `or` over the values of one key.',
      ),
    ),
    max_num_results: optional(
      integer(1, 50, 'Maximum number of passages per search. Default: as configured.'),
    ),
    ranking_options: optional(rankingOptions),
  },
  {
    $id: 'FileSearchTool',
    description: 'Collections that the gateway searches for the model. At most one per request.',
  },
)

export const webSearchFilters = object({
  allowed_domains: optional(
    arrayOf(Type.String(), 'Only pages of these domains and their subdomains.'),
  ),
})

/** A web search that the gateway runs. Only the fields that it honours; upstreams get the tool as sent. */
export const webSearchTool = object({
  type: Type.String(),
  filters: optional(webSearchFilters),
  user_location: optional(anyObject('`city`, `region`, `country` and `timezone` of the user.')),
})

const known: readonly TObject[] = [functionTool, customTool, namespaceTool, mcpTool, fileSearchTool]

export const tool: TSchema = Type.Union(
  [
    ...known,
    ofOtherType(known, {
      $id: 'OtherTool',
      description:
        'A tool that an upstream runs, such as `web_search`. Upstreams of this protocol get it as sent. With other models the gateway runs `web_search` itself if the operator has configured one; any other is refused with `tool_not_supported`, or dropped if the operator says so (`unsupported_tools`).',
    }),
  ],
  { $id: 'Tool' },
)

const toolChoiceByName = ($id: string, types: readonly string[], description: string) =>
  object(
    {
      type: oneOf(types, description),
      name: nonEmptyString('The name of the tool.'),
      namespace: optional(nonEmptyString('The namespace of the tool, if it has one.')),
    },
    { $id },
  )

/** Forces a tool of an MCP server, or is one entry of an allowed list. */
export const mcpToolChoice = object(
  {
    type: Type.Literal('mcp'),
    server_label: nonEmptyString('The label of the server.'),
    name: optional(nonEmptyString('One of its tools. Default: any.')),
  },
  { $id: 'McpToolChoice' },
)
const fileSearchChoice = typed('file_search', { $id: 'FileSearchChoice' })

/** Forces one tool, or is one entry of an allowed list. */
export const namedToolChoice = toolChoiceByName(
  'NamedTool',
  ['function', 'custom', 'namespace'],
  'A namespace stands for all of its tools.',
)
const allowed: readonly TObject[] = [namedToolChoice, mcpToolChoice, fileSearchChoice]

export const allowedTools = object(
  {
    type: Type.Literal('allowed_tools'),
    mode: optional(
      oneOf(['auto', 'required'], 'Whether one of them must be called. Default: `auto`.'),
    ),
    tools: arrayOf(
      Type.Union([
        ...allowed,
        ofOtherType(allowed, {
          $id: 'OtherAllowedTool',
          description: 'A tool that an upstream runs.',
        }),
      ]),
      'The tools of the request that may be called.',
    ),
  },
  { $id: 'AllowedTools' },
)

const forcedTools: readonly TObject[] = [
  toolChoiceByName('NamedToolChoice', ['function', 'custom'], 'This tool must be called.'),
  mcpToolChoice,
  fileSearchChoice,
  allowedTools,
]

export const toolChoice = expecting(
  'none, auto, required or an object that names a tool',
  Type.Union(
    [
      oneOf(['none', 'auto', 'required'], 'Whether the model may or must call a tool.'),
      ...forcedTools,
      ofOtherType(forcedTools, {
        $id: 'OtherToolChoice',
        description: 'A tool that an upstream runs.',
      }),
    ],
    {
      $id: 'ToolChoice',
      description: 'Can only name tools of the request. Default: `auto`.',
    },
  ),
)
