import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { createHostedTools } from '#hosted-tools/hosted-tools.ts'
import type { HostedOutcome, HostedTools } from '#inference/tool-loop/hosted-tools.ts'
import { AppError } from '#lib/errors.ts'
import type { Fetch } from '#outbound/checked-fetch.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { createFileSearch } from '#retrieval/file-search/file-search.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { parse } from '#test/surfaces/responses/parsing.ts'

/** The hosted tools of request bodies. */

type Given = {
  mcpServer?: Partial<Config['mcpServer'][number]>[]
  mcp?: Partial<Config['mcp']>
  fetch?: Fetch
  resolve?: typeof resolveHost
}

export function toolbox({ mcpServer = [], mcp, ...world }: Given = {}) {
  const config = loadConfig({})
  const servers = mcpServer.map((entry) => ({
    label: 'docs',
    url: 'http://127.0.0.1:1/mcp',
    headers: {},
    groups: [],
    ...entry,
  }))
  return createHostedTools({
    config: { mcp: { ...config.mcp, ...mcp }, mcpServer: servers, webSearch: config.webSearch },
    fetch,
    resolve: resolveHost,
    fileSearch: createFileSearch({ search: findNothing, log: quietLog }),
    ...world,
  })
}

async function findNothing(): Promise<never> {
  throw new AppError('service_unavailable', 'There is nothing to search here.')
}

type Toolbox = ReturnType<typeof toolbox>

/** Opens the tools of a body, for a principal in these groups. */
export async function openBody(box: Toolbox, body: object, groups: readonly string[] = []) {
  const { hosted, request } = parse(body)
  const caller = { userId: '01a1ff5c-90a1-8723-840a-77023c0ccf4d', groups }
  const hostedTools = await box.open(hosted, { caller, tools: request.tools })
  if (hostedTools === null) throw new Error('the body asks for no hosted tool')
  return { hostedTools, toolChoice: request.toolChoice }
}

/** One server by its label, without approvals. */
export const docs = { type: 'mcp', server_label: 'docs', require_approval: 'never' }

const context = makeRequestContext()

/** Runs the opening steps and returns their items. */
export async function runOpening({ opening }: HostedTools) {
  const outcomes = await Promise.all(opening.map(({ call, args }) => call.run(args, context)))
  return outcomes.map(({ item }) => item)
}

export async function callTool(
  hostedTools: HostedTools,
  name: string,
  args: object | string = {},
): Promise<HostedOutcome> {
  const call = hostedTools.call(name)
  if (call === null) throw new Error(`there is no tool ${name}`)
  return call.run(typeof args === 'string' ? args : JSON.stringify(args), context)
}

export const names = (hostedTools: HostedTools) => hostedTools.definitions().map(({ name }) => name)
