import { quote } from '#api/read-object.ts'
import type { McpToolRequest, ToolFilter } from '#hosted-tools/mcp/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { invalidField, readObject } from './read-object.ts'
import { mcpServer, mcpToolConfiguration, mcpToolset } from './schema/request.ts'

/** A tool of the type `mcp_toolset`, which configures the tools of one server. */
export type Toolset = { readonly value: JsonObject; readonly path: string }

/**
 * Parses `mcp_servers` and the toolsets, for models whose upstream cannot reach servers itself. A
 * server without a toolset offers all tools, as in the first version of the format.
 */
export function parseMcpServers(
  values: readonly unknown[],
  toolsets: readonly Toolset[],
): readonly McpToolRequest[] {
  const byServer = new Map<string, ToolFilter | null>()
  for (const { value, path } of toolsets) {
    const { mcp_server_name: name, ...toolset } = readObject(mcpToolset, value, path)
    byServer.set(name, filterOf(toolset.default_config, toolset.configs))
  }
  const names = new Set<string>()
  const servers = values.flatMap((value, index): McpToolRequest[] => {
    const path = `mcp_servers.${index}`
    const server = readObject(mcpServer, value, path)
    const { name, url, authorization_token: token = null } = server
    if (names.has(name)) throw invalidField(`${path}.name`, `${quote(name)} is used twice`)
    names.add(name)
    const { enabled = true, allowed_tools: allowed } = readObject(
      mcpToolConfiguration,
      server.tool_configuration ?? {},
      `${path}.tool_configuration`,
    )
    if (!enabled) return []
    const configured = allowed === undefined ? null : { names: allowed.map(String), readOnly: null }
    return [
      {
        path,
        urlPath: `${path}.url`,
        label: name,
        url,
        description: null,
        authorization: token,
        headers: {},
        allowed: byServer.get(name) ?? configured,
        approval: 'never',
      },
    ]
  })
  for (const [name] of byServer) {
    if (!names.has(name))
      throw invalidField('tools', `name the server ${quote(name)}, which is not in mcp_servers`)
  }
  return servers
}

/** The tools that a toolset enables. */
function filterOf(
  defaults: JsonObject | undefined,
  configs: JsonObject | undefined,
): ToolFilter | null {
  const named = (isEnabled: boolean) =>
    Object.entries(configs ?? {}).flatMap(([name, config]) =>
      isRecord(config) && config['enabled'] === isEnabled ? [name] : [],
    )
  if (defaults?.['enabled'] === false) return { names: named(true), readOnly: null }
  const except = named(false)
  return except.length === 0 ? null : { names: null, readOnly: null, except }
}
