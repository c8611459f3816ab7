import type { McpTool } from './request.ts'
import type { McpServer } from './servers.ts'

/** Tools of servers as they were listed a short while ago, one list for each set of credentials. */
export type ListCache = {
  find(server: McpServer): readonly McpTool[] | null
  keep(server: McpServer, tools: readonly McpTool[]): void
}

const entriesMax = 64

export function createListCache(ageMaxMs: number): ListCache {
  const lists = new Map<string, { tools: readonly McpTool[]; listedAt: number }>()
  return {
    find(server) {
      const kept = lists.get(keyOf(server))
      const isFresh = kept !== undefined && performance.now() - kept.listedAt < ageMaxMs
      return isFresh ? kept.tools : null
    },
    keep(server, tools) {
      const key = keyOf(server)
      lists.delete(key)
      lists.set(key, { tools, listedAt: performance.now() })
      const [oldest] = lists.keys()
      if (lists.size > entriesMax && oldest !== undefined) lists.delete(oldest)
    },
  }
}

/** Credentials are not kept as they are. */
function keyOf({ url, headers }: McpServer): string {
  const fields = Object.entries(headers).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const text = JSON.stringify([url.href, fields])
  return new Bun.CryptoHasher('sha256').update(text).digest('base64')
}
