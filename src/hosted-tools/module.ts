import { type Foundation, module } from '#module.ts'
import { resolveHost } from '#outbound/resolve.ts'
import type { FileSearch } from '#retrieval/file-search/file-search.ts'
import { createHostedTools } from './hosted-tools.ts'

/** Tools that the gateway runs itself: remote MCP servers and file search. */
export const hostedToolsModule = module({
  name: 'hosted-tools',
  start: ({ config, fetch, fileSearch }: Foundation & { fileSearch: FileSearch }) => ({
    services: {
      hostedTools: createHostedTools({ config, fetch, resolve: resolveHost, fileSearch }),
    },
  }),
})
