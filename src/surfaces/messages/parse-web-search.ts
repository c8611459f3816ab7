import { describeLocation, isDomain, type WebSearchTool } from '#hosted-tools/web-search/request.ts'
import { invalidField, readObject } from './read-object.ts'
import { webSearchTool } from './schema/request.ts'

/** Parses a tool of a type `web_search_*` that the gateway runs. */
export function parseWebSearchTool(value: unknown, path: string): WebSearchTool {
  const tool = readObject(webSearchTool, value, path)
  const readDomains = (field: 'allowed_domains' | 'blocked_domains') =>
    (tool[field] ?? []).map((domain, index) => {
      if (isDomain(domain)) return domain
      throw invalidField(`${path}.${field}.${index}`, 'must be a domain')
    })
  const domains = {
    allowed: readDomains('allowed_domains'),
    blocked: readDomains('blocked_domains'),
  }
  if (domains.allowed.length > 0 && domains.blocked.length > 0) {
    throw invalidField(`${path}.blocked_domains`, 'cannot be used together with allowed_domains')
  }
  return {
    path,
    domains,
    callsMax: tool.max_uses ?? null,
    location: describeLocation(tool.user_location),
  }
}
