import type { HostedChoice } from '#inference/tool-loop/own-function.ts'
import type { JsonObject } from '#lib/json.ts'
import type { DomainFilter } from './results.ts'

/** The web search of a request, which the gateway runs because no upstream of the model can. */
export type WebSearchRequest = {
  /** Null: no web search. */
  readonly tool: WebSearchTool | null
  readonly choice: HostedChoice
}

export type WebSearchTool = {
  /** Its path in the request. */
  readonly path: string
  readonly domains: DomainFilter
  /** The most searches of one response. */
  readonly callsMax: number | null
  /** Where the user is, in words for the model; null: unknown. */
  readonly location: string | null
}

export const noWebSearch: WebSearchRequest = { tool: null, choice: 'any' }

/** Also the name of calls in earlier turns. */
export const webSearchName = 'web_search'

/** `web_search` and its dated and preview versions. */
export function isWebSearchType(type: string): boolean {
  return type === webSearchName || type.startsWith(`${webSearchName}_`)
}

const domainShape = /^(https?:\/\/)?[\w-]+(\.[\w-]+)*(\/[^\s]*)?$/
const domainCharsMax = 500

/** A domain, which may have a path. */
export function isDomain(value: unknown): value is string {
  return typeof value === 'string' && value.length <= domainCharsMax && domainShape.test(value)
}

const placeCharsMax = 100

/** `user_location` of a tool, as both protocols have it. */
export function describeLocation(location: JsonObject | undefined): string | null {
  const { city, region, country, timezone } = location ?? {}
  const places = [city, region, country].filter((place) => typeof place === 'string')
  const zone = typeof timezone === 'string' ? [`time zone ${timezone}`] : []
  const parts = [...places, ...zone].map((part) => part.slice(0, placeCharsMax))
  return parts.length === 0 ? null : parts.join(', ')
}
