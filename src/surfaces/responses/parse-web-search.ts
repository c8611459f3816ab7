import { describeLocation, isDomain, type WebSearchTool } from '#hosted-tools/web-search/request.ts'
import { invalidField, readObject } from './read-object.ts'
import { webSearchFilters, webSearchTool } from './schema/tools.ts'

/** Parses a tool of type `web_search` that the gateway runs. */
export function parseWebSearchTool(value: unknown, path: string): WebSearchTool {
  const tool = readObject(webSearchTool, value, path)
  const filters = readObject(webSearchFilters, tool.filters ?? {}, `${path}.filters`)
  const allowed = (filters.allowed_domains ?? []).map((domain, index) => {
    if (isDomain(domain)) return domain
    throw invalidField(`${path}.filters.allowed_domains[${index}]`, 'must be a domain')
  })
  return {
    path,
    domains: { allowed, blocked: [] },
    callsMax: null,
    location: describeLocation(tool.user_location),
  }
}
