import { Type } from '@sinclair/typebox'
import { choice, entry, reloading, section, text, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'
import { isUrl, webProtocols } from '#lib/url.ts'

/** An `[[mcp_server]]` of the file. */
const mcpServerEntry = entry('A remote MCP server that callers may use as a tool.', {
  label: text(
    'Unique label that callers use (server_label): a letter, then letters, digits, _ or -.',
  ),
  url: text('URL (streamable HTTP). Private addresses are allowed.'),
  key: Type.Optional(text('Credential, sent as a bearer token.', { secret: true })),
  keyEnv: Type.Optional(text('Environment variable that contains the credential.')),
  headers: Type.Record(Type.String(), Type.String(), {
    description: 'Additional request headers.',
    default: {},
    secret: true,
  }),
  groups: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Groups whose members may use the server; empty: everyone.',
    default: [],
  }),
})

/** The keys of tools that the gateway or an upstream runs. */
export const hostedToolKeys = {
  unsupportedTools: reloading(
    choice(
      "What happens to a tool that only an upstream of the client's own protocol could run (web search, code execution): refuse answers 400 tool_not_supported; drop calls the model without it, which may then invent its results.",
      ['refuse', 'drop'],
    ),
  ),
  mcpServer: reloading(
    Type.Array(mcpServerEntry, {
      description: 'Remote MCP servers that callers may use by label or URL.',
      default: [],
    }),
  ),
  webSearch: reloading(
    section(
      'Web search for models whose upstream has none: a tool of an MCP server that the gateway calls where a request has web_search (Responses) or web_search_* (Messages).',
      {
        mcpServer: Type.Optional(
          text('Label of the [[mcp_server]] with the tool; absent: such requests are refused.'),
        ),
        tool: text('Name of the tool.', { default: 'search' }),
        queryField: text('Field of its input that takes the query.', { default: 'query' }),
      },
    ),
  ),
  mcp: reloading(
    section('Limits for tools of remote MCP servers, and hosts that callers may name.', {
      hosts: Type.Array(Type.String({ minLength: 1 }), {
        description:
          'Hosts of other servers that callers may name by URL: "api.example.com", "*.example.com" or "*". Such servers need a public address and https.',
        default: [],
      }),
      ports: Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
        description: 'Allowed ports of such URLs; empty: any.',
        default: [443],
      }),
      listMs: whole('Timeout for connecting to a server and listing its tools.', {
        default: 10_000,
        minimum: 10,
      }),
      listCacheMs: whole('How long a tool list is cached.', { default: 60_000, minimum: 0 }),
      callMs: whole('Timeout of a tool call.', { default: 60_000, minimum: 10 }),
      answerBytesMax: whole('Maximum response size of a server.', {
        default: 8_388_608,
        minimum: 1024,
      }),
      outputCharsMax: whole(
        'Maximum text of a tool result that is passed to the model; longer results are truncated.',
        {
          default: 262_144,
          minimum: 1,
        },
      ),
    }),
  ),
}

/** Part of the section `limits`. */
export const hostedToolLimits = {
  hostedCallsMax: whole(
    'Maximum calls of hosted tools per response, even if the request allows more.',
    {
      default: 64,
      minimum: 1,
    },
  ),
  hostedCallsAtOnceMax: whole('Maximum concurrent calls of hosted tools per response.', {
    default: 8,
    minimum: 1,
  }),
  hostedTurnsMax: whole('Maximum model calls per response with hosted tools.', {
    default: 16,
    minimum: 2,
  }),
}

/** Rules of these keys beyond the schema. */
export function* hostedToolFaults({ mcpServer, webSearch }: Config): Generator<string> {
  const labels = new Set<string>()
  for (const [at, { label, url }] of mcpServer.entries()) {
    const where = `mcp_server.${at}`
    if (labels.has(label)) yield `${where}.label: "${label}" is used twice.`
    labels.add(label)
    if (!/^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/.test(label)) {
      yield `${where}.label: must be a letter followed by up to 63 letters, digits, _ or -.`
    }
    if (!isUrl(url, webProtocols)) {
      yield `${where}.url: must be an http or https URL without credentials.`
    }
  }
  const { mcpServer: searchLabel } = webSearch
  if (searchLabel !== undefined && !labels.has(searchLabel)) {
    yield `web_search.mcp_server: no [[mcp_server]] has the label "${searchLabel}".`
  }
}
