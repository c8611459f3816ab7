import { Type } from '@sinclair/typebox'
import { entry, section, text, whole } from './keys.ts'

/** An `[[mcp_server]]` of the file. */
const mcpServerEntry = entry('A remote MCP server that callers may use as a tool.', {
  label: text('How callers name it (server_label); unique, a letter and letters, digits, _ or -.'),
  url: text('Where it answers (streamable HTTP). It may be a private address.'),
  key: Type.Optional(text('Its credential, sent as a bearer token.', { secret: true })),
  keyEnv: Type.Optional(text('The environment variable that holds the credential.')),
  headers: Type.Record(Type.String(), Type.String(), {
    description: 'Further request headers.',
    default: {},
    secret: true,
  }),
  groups: Type.Array(Type.String({ minLength: 1 }), {
    description: 'The groups whose members may use it; empty: everybody.',
    default: [],
  }),
})

/** The keys about remote MCP servers. */
export const mcpKeys = {
  mcpServer: Type.Array(mcpServerEntry, {
    description: 'Remote MCP servers that callers may name by their label or URL.',
    default: [],
  }),
  mcp: section('Tools of remote MCP servers, and how long and large their answers may be.', {
    hosts: Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Hosts of further servers that callers may name by URL: "api.example.com", "*.example.com" or "*". Such a server must be public and speak https.',
      default: [],
    }),
    ports: Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
      description: 'The ports that such a URL may name; empty: every port.',
      default: [443],
    }),
    listMs: whole('To connect to a server and to list its tools.', {
      default: 10_000,
      minimum: 10,
    }),
    listCacheMs: whole('How long a list of tools is used again.', { default: 60_000, minimum: 0 }),
    callMs: whole('How long one call may take.', { default: 60_000, minimum: 10 }),
    answerBytesMax: whole('The longest answer of a server.', {
      default: 8_388_608,
      minimum: 1024,
    }),
    outputCharsMax: whole('The most text of one call that a model is given; the rest is cut.', {
      default: 262_144,
      minimum: 1,
    }),
  }),
}

/** Of the section `limits`. */
export const hostedToolLimits = {
  hostedCallsMax: whole('Calls of hosted tools in one response, whatever the caller allows.', {
    default: 64,
    minimum: 1,
  }),
  hostedCallsAtOnceMax: whole('How many of them run at the same time.', {
    default: 8,
    minimum: 1,
  }),
  hostedTurnsMax: whole('Runs of the model in one response with hosted tools.', {
    default: 16,
    minimum: 2,
  }),
}
