import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { checkUrl } from '#outbound/check-url.ts'
import { type CheckedFetch, createCheckedFetch, type Fetch } from '#outbound/checked-fetch.ts'
import type { Resolve } from '#outbound/resolve.ts'
import type { McpToolRequest } from './request.ts'

/** A server that a request may use, and how it is reached. */
export type McpServer = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** What must not be seen in anything that the server says. */
  readonly secrets: readonly string[]
  readonly fetch: CheckedFetch
}

export type ServerSources = {
  readonly config: Pick<Config, 'mcp' | 'mcpServer'>
  readonly fetch: Fetch
  readonly resolve: Resolve
}

type Entry = Config['mcpServer'][number]

/**
 * The server that a tool of a request means: one of the configuration, by URL or by label alone, or
 * any that the configured hosts let callers name. Throws `invalid_request` where there is none.
 */
export async function findServer(
  asked: McpToolRequest,
  groups: readonly string[],
  sources: ServerSources,
): Promise<McpServer> {
  const { path, label } = asked
  const url = asked.url === null ? null : parseUrl(asked.url, `${path}.server_url`)
  const entry = sources.config.mcpServer.find(
    (entry) =>
      isMeant(entry, { url, label }) &&
      (entry.groups.length === 0 || entry.groups.some((group) => groups.includes(group))),
  )
  if (entry !== undefined) return configuredServer(entry, asked, sources)
  if (url !== null) return namedServer(url, asked, sources)
  throw new AppError(
    'invalid_request',
    `${path}.server_url is required: no server with the label "${label}" is offered here.`,
    { param: `${path}.server_url` },
  )
}

function parseUrl(text: string, param: string): URL {
  if (URL.canParse(text)) return new URL(text)
  throw new AppError('invalid_request', `${param} must be a URL.`, { param })
}

function isMeant(entry: Entry, { url, label }: { url: URL | null; label: string }): boolean {
  return url === null ? entry.label === label : new URL(entry.url).href === url.href
}

/** What the administrator set goes before what the caller sent. */
function configuredServer(entry: Entry, asked: McpToolRequest, sources: ServerSources): McpServer {
  const { key, headers } = entry
  const url = new URL(entry.url)
  return {
    url,
    headers: {
      ...callerHeaders(asked),
      ...lowerCased(headers),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    secrets: [...(key === undefined ? [] : [key]), ...Object.values(headers)],
    fetch: createCheckedFetch(
      { hosts: [url.hostname], portsAllowed: [], private: true, ...limitsOf(sources) },
      sources,
    ),
  }
}

async function namedServer(
  url: URL,
  asked: McpToolRequest,
  sources: ServerSources,
): Promise<McpServer> {
  const { hosts, ports } = sources.config.mcp
  const param = `${asked.path}.server_url`
  const policy = { hosts, portsAllowed: ports, private: false }
  try {
    await checkUrl(url, policy, { what: param, resolve: sources.resolve })
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.kind, error.message, { param })
  }
  return {
    url,
    headers: callerHeaders(asked),
    secrets: [],
    fetch: createCheckedFetch({ ...policy, ...limitsOf(sources) }, sources),
  }
}

function limitsOf({ config: { mcp } }: ServerSources) {
  return { timeoutMs: mcp.listMs + mcp.callMs, bodyBytesMax: mcp.answerBytesMax }
}

/** Headers that say how a request travels, or are set by the protocol, are not the caller's to set. */
const reserved =
  /^(host|connection|content-.*|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|accept.*|mcp-.*|last-event-id)$/

function callerHeaders({ headers, authorization }: McpToolRequest): Record<string, string> {
  const given = Object.entries(lowerCased(headers)).filter(([name]) => !reserved.test(name))
  if (authorization === null) return Object.fromEntries(given)
  // It is meant to be the bare token, but not everybody sends that.
  const token = authorization.replace(/^bearer /i, '')
  return { ...Object.fromEntries(given), authorization: `Bearer ${token}` }
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  const fields = Object.entries(headers)
  return Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]))
}
