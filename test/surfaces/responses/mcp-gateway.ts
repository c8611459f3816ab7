import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ServedMcp, serveMcp } from '#test/hosted-tools/mcp-server.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'

/** A gateway with a real MCP server, with the label `docs`. */
export type McpGateway = { gateway: Gateway; server: ServedMcp; stop(): Promise<void> }

/** `toml` is added to the configuration file. */
export async function startMcpGateway(
  options: GatewayOptions & { toml?: string } = {},
): Promise<McpGateway> {
  const server = await serveMcp()
  const file = join(mkdtempSync(join(tmpdir(), 'sluice-')), 'sluice.toml')
  writeFileSync(
    file,
    `[[mcp_server]]\nlabel = "docs"\nurl = "${server.url}"\nkey = "a-secret-of-the-administrator"\n${options.toml ?? ''}`,
  )
  const environment = { SLUICE_CONFIG: file, ...options.environment }
  const gateway = await startGateway({ ...options, environment })
  return {
    gateway,
    server,
    async stop() {
      await gateway.stop()
      await server.stop()
    },
  }
}
