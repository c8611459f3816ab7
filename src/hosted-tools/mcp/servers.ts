import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { checkUrl } from '#outbound/check-url.ts'
import { type CheckedFetch, createCheckedFetch, type Fetch } from '#outbound/checked-fetch.ts'
import type { Resolve } from '#outbound/resolve.ts'
import type { McpToolRequest } from './request.ts'

/** A server that a request may use, and how to reach it. */
export type McpServer = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Redacted in all texts of the server. */
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
 * The server of an `mcp` tool: a configured one, by URL or by label, or any server on the hosts that
 * the configuration allows. Throws `invalid_request` if there is none.
 */
export async function findServer(
  request: McpToolRequest,
  groups: readonly string[],
  sources: ServerSources,
): Promise<McpServer> {
  const { urlPath, label } = request
  const url = request.url === null ? null : parseUrl(request.url, urlPath)
  const entry = sources.config.mcpServer.find(
    (entry) => matchesEntry(entry, { url, label }) && mayUse(entry, groups),
  )
  if (entry !== undefined) return configuredServer(entry, request, sources)
  if (url !== null) return unconfiguredServer(url, request, sources)
  throw new AppError(
    'invalid_request',
    `${urlPath} is required: no server with the label "${label}" is configured.`,
    { param: urlPath },
  )
}

/** Whether members of these groups may use a configured server. */
export function mayUse({ groups: allowed }: Pick<Entry, 'groups'>, groups: readonly string[]) {
  return allowed.length === 0 || allowed.some((group) => groups.includes(group))
}

function parseUrl(text: string, param: string): URL {
  if (URL.canParse(text)) return new URL(text)
  throw new AppError('invalid_request', `${param} must be a URL.`, { param })
}

function matchesEntry(entry: Entry, { url, label }: { url: URL | null; label: string }): boolean {
  return url === null ? entry.label === label : new URL(entry.url).href === url.href
}

/** Configured headers replace those of the client. */
function configuredServer(
  entry: Entry,
  request: McpToolRequest,
  sources: ServerSources,
): McpServer {
  const { key, headers } = entry
  const url = new URL(entry.url)
  return {
    url,
    headers: {
      ...clientHeaders(request),
      ...withLowerCaseNames(headers),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    secrets: [...(key === undefined ? [] : [key]), ...Object.values(headers)],
    fetch: createCheckedFetch(
      { hosts: [url.hostname], portsAllowed: [], private: true, ...limitsOf(sources) },
      sources,
    ),
  }
}

async function unconfiguredServer(
  url: URL,
  request: McpToolRequest,
  sources: ServerSources,
): Promise<McpServer> {
  const { hosts, ports } = sources.config.mcp
  const param = request.urlPath
  const policy = { hosts, portsAllowed: ports, private: false }
  try {
    await checkUrl(url, policy, { what: param, resolve: sources.resolve })
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.kind, error.message, { param })
  }
  return {
    url,
    headers: clientHeaders(request),
    secrets: [],
    fetch: createCheckedFetch({ ...policy, ...limitsOf(sources) }, sources),
  }
}

function limitsOf({ config: { mcp } }: ServerSources) {
  return { timeoutMs: mcp.listMs + mcp.callMs, bodyBytesMax: mcp.answerBytesMax }
}

/** Headers of the transport and of the protocol, which clients cannot set. */
const reservedHeaders =
  /^(host|connection|content-.*|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|accept.*|mcp-.*|last-event-id)$/

function clientHeaders({ headers, authorization }: McpToolRequest): Record<string, string> {
  const accepted = Object.entries(withLowerCaseNames(headers)).filter(
    ([name]) => !reservedHeaders.test(name),
  )
  if (authorization === null) return Object.fromEntries(accepted)
  // The field is the bare token, but some clients send the scheme with it.
  const token = authorization.replace(/^bearer /i, '')
  return { ...Object.fromEntries(accepted), authorization: `Bearer ${token}` }
}

function withLowerCaseNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  const fields = Object.entries(headers)
  return Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]))
}
