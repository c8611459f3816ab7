import { expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '#config/load.ts'
import { redactConfig } from '#config/secrets.ts'

function load(toml: string, environment: Record<string, string> = {}) {
  const file = join(mkdtempSync(join(tmpdir(), 'sluice-')), 'sluice.toml')
  writeFileSync(file, toml)
  return loadConfig({ SLUICE_CONFIG: file, ...environment })
}

const server = '[[mcp_server]]\nlabel = "docs"\nurl = "http://10.0.0.1:8000/mcp"\n'

test('callers may not name servers of their own unless hosts are configured', () => {
  const { mcp, mcpServer } = load('')
  expect([mcp.hosts, mcp.ports, mcpServer]).toEqual([[], [443], []])
  expect(load('[mcp]\nhosts = ["*.example.com"]').mcp.hosts).toEqual(['*.example.com'])
})

test('a server may take its credential from the environment, which is never printed', () => {
  const config = load(`${server}key_env = "DOCS_KEY"\nheaders = { "X-Key" = "hidden" }`, {
    DOCS_KEY: 'hidden-too',
  })
  expect(config.mcpServer).toMatchObject([{ label: 'docs', key: 'hidden-too', groups: [] }])
  expect(JSON.stringify(redactConfig(config))).not.toContain('hidden')
})

test('a server with an unusable label, URL or key is refused', () => {
  const faultOf = (toml: string) => {
    try {
      load(toml)
    } catch (error) {
      return error instanceof Error ? error.message : ''
    }
    return ''
  }
  expect(faultOf(server + server)).toContain('mcp_server.1.label: "docs" is used twice.')
  expect(faultOf(server.replace('docs', 'two words'))).toContain('mcp_server.0.label')
  expect(faultOf(server.replace('http', 'ftp'))).toContain(
    'mcp_server.0.url: must be an http or https URL',
  )
  expect(faultOf(server.replace('//', '//u:p@'))).toContain(
    'mcp_server.0.url: must be an http or https URL',
  )
  expect(faultOf(`${server}key_env = "ABSENT_KEY"`)).toContain(
    'mcp_server.0.key_env: the variable ABSENT_KEY is not set.',
  )
})
